//! Messages to the user, on the standard error. Data goes to the [standard output](crate::output).

use crate::output::escape;
use anstream::eprintln;
use anstyle::{AnsiColor, Style};

const NOTE: Style = AnsiColor::Yellow.on_default().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();

/// Prints a message that is not an error.
pub(crate) fn note(message: &str) {
    eprintln!("{NOTE}note{NOTE:#}: {}", escape(message));
}

/// Prints an error.
pub(crate) fn error(message: &str) {
    eprintln!("{ERROR}error{ERROR:#}: {}", escape(message));
}

/// Prints a summary: a message without a prefix.
pub(crate) fn summary(message: &str) {
    eprintln!("{}", escape(message));
}

/// A number and its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
