//! The standard output, buffered.

use anstyle::{AnsiColor, Style};
use std::io::{self, BufWriter, StdoutLock, Write};

/// Data goes here, as it is: bytes that are no text stay bytes.
pub(crate) fn raw() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Tables for people go here: with colours, unless the output is no terminal or `NO_COLOR` is set.
pub(crate) fn coloured() -> BufWriter<anstream::AutoStream<StdoutLock<'static>>> {
    BufWriter::new(anstream::AutoStream::auto(io::stdout()).lock())
}

/// Writes one JSON object to the standard output, in one line.
pub(crate) fn json(object: &serde_json::Value) -> io::Result<()> {
    let mut out = raw();
    serde_json::to_writer(&mut out, object)?;
    writeln!(out)?;
    out.flush()
}

const NOTE: Style = AnsiColor::Yellow.on_default().bold();

/// Says something on the standard error that is no error.
pub(crate) fn note(message: &str) {
    anstream::eprintln!("{NOTE}note{NOTE:#}: {message}");
}

/// A number and its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
