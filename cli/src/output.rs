//! The standard output, buffered. Messages go to the [standard error](crate::message).
//!
//! Every verb writes through this module. The first failed write is remembered, even one in a buffer that is dropped, so that the
//! [exit code](crate::failure::outcome) reflects it regardless of the verb's own outcome.

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::{Mutex, PoisonError};
use tracepoint_reader::json;
use tracepoint_reader::text::{escape_controls, is_control};

/// The error of the first write that failed.
static FIRST_ERROR: Mutex<Option<io::Error>> = Mutex::new(None);

/// The standard output for data.
pub(crate) type Raw = BufWriter<FirstErrorWriter<StdoutLock<'static>>>;

/// The standard output for binary data, written unchanged.
pub(crate) fn raw() -> Raw {
    BufWriter::with_capacity(1 << 16, FirstErrorWriter(io::stdout().lock()))
}

/// The standard output for data as text: unchanged, except that control characters are escaped on a terminal.
pub(crate) fn plain() -> Box<dyn Write> {
    let out = raw();
    if io::stdout().is_terminal() {
        Box::new(EscapingWriter { out, is_plain: true, rest: Vec::new() })
    } else {
        Box::new(out)
    }
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// Applies the choice to all further output and messages.
    pub(crate) fn apply(self) {
        let choice = match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// True if data on the standard output is coloured.
pub(crate) fn has_color() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// The standard output for text read by people: coloured on a terminal, unless `NO_COLOR` is set.
pub(crate) fn styled() -> impl Write {
    let out = BufWriter::new(FirstErrorWriter(AutoStream::auto(io::stdout()).lock()));
    EscapingWriter { out, is_plain: false, rest: Vec::new() }
}

/// Completes the output.
///
/// # Errors
///
/// The first error since the last call, which may have been returned to the verb already.
pub(crate) fn finish() -> io::Result<()> {
    // The error is kept by `FirstErrorWriter`.
    drop(FirstErrorWriter(io::stdout().lock()).flush());
    FIRST_ERROR.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}

/// Writes a JSON object to the standard output, in one line.
pub(crate) fn json(object: &impl Serialize) -> io::Result<()> {
    let mut out = raw();
    json_line(&mut out, object)?;
    out.flush()
}

/// Writes one of many JSON objects, in one line.
pub(crate) fn json_line(out: &mut impl Write, object: &impl Serialize) -> io::Result<()> {
    json::to_writer(&mut *out, object)?;
    writeln!(out)
}

pub(crate) struct FirstErrorWriter<W>(W);

impl<W> FirstErrorWriter<W> {
    fn note<T>(result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            let same = || error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            FIRST_ERROR.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(same);
        }
        result
    }
}

impl<W: Write> Write for FirstErrorWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::note(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::note(self.0.flush())
    }
}

/// Escapes control characters: text that traced processes wrote must not control the user's terminal.
struct EscapingWriter<W> {
    out: W,
    /// True if the text contains no colours of this program.
    is_plain: bool,
    /// The first bytes of an incomplete character.
    rest: Vec<u8>,
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [&std::mem::take(&mut self.rest), bytes].concat();
        // The number of trailing bytes that start an incomplete character.
        let begun = (1..=all.len().min(3)).find(|count| {
            let end = &all[all.len() - count..];
            str::from_utf8(end).is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
        });
        let (whole, rest) = all.split_at(all.len() - begun.unwrap_or(0));
        let text = String::from_utf8_lossy(whole);
        let text = if self.is_plain { escape_controls(&text, &['\n', '\t']) } else { escape(&text).into() };
        self.out.write_all(text.as_bytes())?;
        rest.clone_into(&mut self.rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The text with control characters as `\u{1b}`, except for line feeds, tabs, and colours.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = if c == '\u{1b}' { colour_sequence(rest) } else { None };
        let (taken, left) = rest.split_at(colour.unwrap_or(c.len_utf8()));
        if is_control(c) && colour.is_none() && !matches!(c, '\n' | '\t') {
            let _ = write!(escaped, "{}", c.escape_unicode());
        } else {
            escaped.push_str(taken);
        }
        rest = left;
    }
    escaped
}

/// The text in one line, with control characters except tabs escaped: a name or a path chosen by a traced process must not look like a line of
/// the output, or have colours.
pub(crate) fn in_line(text: &str) -> String {
    escape_controls(&text.replace('\n', "\\n"), &['\t']).into_owned()
}

/// The length of the escape sequence at the start of the text, if it is one that only selects colours (SGR).
fn colour_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colour_sequences_reach_a_terminal() -> io::Result<()> {
        for (text, expected) in [
            ("a\u{e9}\tb\n", "a\u{e9}\tb\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}[", "\\u{1b}["),
            ("\u{1b}", "\\u{1b}"),
            ("\u{202e}cba\u{2066}", "\\u{202e}cba\\u{2066}"),
            ("\u{9b}2J\r\u{7f}", "\\u{9b}2J\\u{d}\\u{7f}"),
        ] {
            assert_eq!(escape(text), expected);
        }
        let mut out = EscapingWriter { out: Vec::new(), is_plain: false, rest: Vec::new() };
        write!(out, "\u{1b}[1mx\u{1b}[0m\u{8}")?;
        assert_eq!(out.out, b"\x1b[1mx\x1b[0m\\u{8}");
        Ok(())
    }

    #[test]
    fn characters_that_come_in_parts_are_whole() -> io::Result<()> {
        let mut out = EscapingWriter { out: Vec::new(), is_plain: true, rest: Vec::new() };
        for byte in "é\u{1b}[1m€\u{9b}𝄞\n".as_bytes() {
            out.write_all(&[*byte])?;
        }
        out.write_all(b"\xff\xe2|\xc3")?;
        assert_eq!(String::from_utf8_lossy(&out.out), "é\\u{1b}[1m€\\u{9b}𝄞\n\u{fffd}\u{fffd}|");
        out.write_all(b"\xa9")?;
        assert!(out.out.ends_with("é".as_bytes()));
        Ok(())
    }
}
