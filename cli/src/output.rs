//! The standard output, buffered.

use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use std::io::{self, BufWriter, StdoutLock, Write};

/// Data goes here, as it is: bytes that are no text stay bytes.
pub(crate) fn raw() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Tables for people go here: with colours, unless the output is no terminal or `NO_COLOR` is set.
pub(crate) fn coloured() -> impl Write {
    Table(BufWriter::new(anstream::AutoStream::auto(io::stdout()).lock()))
}

/// What processes say of themselves is no command to a terminal.
struct Table<W>(W);

impl<W: Write> Write for Table<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(plain(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The text with its control characters shown as `\u{1b}`, but for ends of lines, tabs, and colours.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = if c == '\u{1b}' { colour(rest) } else { None };
        let (taken, left) = rest.split_at(len.unwrap_or(c.len_utf8()));
        if c.is_control() && len.is_none() && !matches!(c, '\n' | '\t') {
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push_str(taken);
        }
        rest = left;
    }
    shown
}

/// How long the sequence is with which the text begins, if it chooses a colour or the like, and does nothing else.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
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
    anstream::eprintln!("{NOTE}note{NOTE:#}: {}", plain(message));
}

/// A number and its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_get_colours_and_no_other_commands() -> io::Result<()> {
        for (text, expected) in [
            ("a\u{e9}\tb\n", "a\u{e9}\tb\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{1b}", "\\u{1b}"),
            ("\u{9b}2J\r\u{7f}", "\\u{9b}2J\\u{d}\\u{7f}"),
        ] {
            assert_eq!(plain(text), expected);
        }
        let mut out = Table(Vec::new());
        write!(out, "{NOTE}x{NOTE:#}\u{8}")?;
        assert_eq!(out.0, format!("{NOTE}x{NOTE:#}\\u{{8}}").as_bytes());
        Ok(())
    }
}
