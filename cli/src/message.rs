//! Messages to the user, on the standard error. Data goes to the [standard output](crate::output).
//!
//! If the standard error cannot be written, messages are dropped and the verb continues.

use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::io::Write;
use tracepoint_reader::text::escape_controls;

const NOTE: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Prints a message that is not an error.
pub(crate) fn note(message: &str) {
    line(format_args!("{NOTE}note{NOTE:#}: {}", escape(message)));
}

pub(crate) fn error(message: &str) {
    line(format_args!("{ERROR}error{ERROR:#}: {}", escape(message)));
}

/// Prints a summary: a message without a prefix.
pub(crate) fn summary(message: &str) {
    line(format_args!("{}", escape(message)));
}

/// Escapes control characters: a message may quote text written by traced processes.
fn escape(message: &str) -> Cow<'_, str> {
    escape_controls(message, &['\n', '\t'])
}

fn line(text: std::fmt::Arguments<'_>) {
    drop(writeln!(anstream::stderr().lock(), "{text}"));
}

/// A number and its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Notes that traces lack events. `is_least`: an unknown number of other events was lost as well.
pub(crate) fn note_lost(events: u64, is_least: bool) {
    if events > 0 || is_least {
        let (events, more) = (counted(events, "event"), if is_least { " or more" } else { "" });
        note(&format!("these traces have lost {events}{more}, selected ones or others"));
    }
}

pub(crate) fn note_unchecked(packets: u64) {
    let (packets, have) = (counted(packets, "packet"), if packets == 1 { "has" } else { "have" });
    note(&format!(
        "{packets} {have} no checksum, because the trace was recorded by an older version; damage in them may go unnoticed"
    ));
}

pub(crate) fn note_dropped(packets: u64) {
    if packets > 0 {
        let packets = counted(packets, "packet");
        note(&format!("the oldest {packets} were left out, because the file has too few slots"));
    }
}
