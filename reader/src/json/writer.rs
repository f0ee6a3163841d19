//! Writes JSON without terminal control characters, so that it can be shown on a terminal.

use crate::text::is_control;
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Writes JSON made by another library, with the characters escaped that [`to_writer`] escapes. Line feeds between values are kept.
///
/// # Errors
/// Those of `out`.
pub fn copy(mut out: impl Write, json: &str) -> io::Result<()> {
    write_escaped(&mut out, json)
}

/// Writes a value in one line, without a line feed. In addition to what JSON requires, control characters (DEL and C1) and characters that change
/// the direction of text are escaped; any JSON reader decodes them.
///
/// # Errors
/// Those of `out`, and of a value that JSON cannot represent.
pub fn to_writer(out: impl Write, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, EscapingFormatter))
}

/// Like [`to_writer`], but returns a string.
///
/// # Errors
/// Those of a value that JSON cannot represent.
pub fn to_string(value: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let mut text = Vec::new();
    to_writer(&mut text, value)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

struct EscapingFormatter;

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(out, fragment)
    }
}

/// Escapes control characters beyond ASCII's C0; these occur only in strings. Every JSON writer escapes C0 in strings.
fn write_escaped<W: Write + ?Sized>(out: &mut W, json: &str) -> io::Result<()> {
    if json.bytes().all(|byte| byte < 0x7F) {
        return out.write_all(json.as_bytes());
    }
    let is_escaped = |c: char| c >= '\u{7f}' && is_control(c);
    let mut rest = json;
    while let Some((before, c)) = rest.find(is_escaped).and_then(|at| Some((&rest[..at], rest[at..].chars().next()?))) {
        // All of them are below U+10000: one unit of UTF-16.
        write!(out, "{before}\\u{:04x}", u32::from(c))?;
        rest = &rest[before.len() + c.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_character_is_escaped_and_read_back() {
        let text: String = (0..0x3000_u32).filter_map(char::from_u32).chain("\"\\é𝄞".chars()).collect();
        let json = to_string(&[&text]).expect("is JSON");
        assert!(!json.contains(is_control), "{json}");
        let mut copied = Vec::new();
        copy(&mut copied, &format!("{}\n", serde_json::json!([&text]))).expect("memory takes it");
        assert_eq!(String::from_utf8(copied).expect("UTF-8"), format!("{json}\n"));
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).expect("is JSON"), [text]);
        assert_eq!(to_string("a\u{9b}\u{7f}é\u{202e}").expect("is JSON"), r#""a\u009b\u007fé\u202e""#);
    }
}
