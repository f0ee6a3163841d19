//! The metadata of a trace with its clock aligned to its collector's clock. A dt file has no other place for the alignment.

use crate::metadata::Metadata;
use crate::metadata::checksum::made_anew;
use std::fmt::Write;

/// Returns the text with clocks whose offset is `offset` nanoseconds from the epoch; `None` if its clocks are not written in the usual form.
pub(super) fn aligned(text: &[u8], offset: i64) -> Option<Vec<u8>> {
    let text = str::from_utf8(text).ok()?;
    let (mut out, mut rest) = (String::with_capacity(text.len() + 32), text);
    while let Some((before, body)) = split_at_clock(rest) {
        let (body, after) = body.split_once('}')?;
        let is_offset =
            |statement: &&str| matches!(statement.split('=').next().map(str::trim), Some("offset" | "offset_s"));
        let statements: Vec<_> = body.split(';').filter(|statement| !is_offset(statement)).collect();
        let (end, statements) = statements.split_last()?;
        out += before;
        out.extend(statements.iter().flat_map(|statement| [*statement, ";"]));
        // Writing to a `String` cannot fail.
        let _ = write!(out, "\n\toffset = {offset};{end}}}");
        rest = after;
    }
    out += rest;
    let is_aligned = |metadata: Metadata| Some(metadata.clocks().first()?.nanoseconds(0) == offset);
    Metadata::parse(out.as_bytes()).ok().and_then(is_aligned)?.then(|| made_anew(text.as_bytes(), out.into_bytes()))
}

/// The text up to the closing brace of the next clock, and the text after it. Skips strings.
fn split_at_clock(text: &str) -> Option<(&str, &str)> {
    let (mut is_quoted, mut is_escaped, mut last) = (false, false, None);
    for (at, character) in text.char_indices() {
        let before = last.replace(character);
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            'c' if !is_quoted => {
                let is_word = before.is_none_or(|before: char| before.is_whitespace() || matches!(before, ';' | '/'));
                let body = text[at..].strip_prefix("clock").and_then(|rest| rest.trim_start().strip_prefix('{'));
                if let Some(body) = body.filter(|_| is_word) {
                    return Some(text.split_at(text.len() - body.len()));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
env { procname = \"x; clock { \\\"y\"; };
stream { event.header := struct { u32 id; }; };
event { name = \"e\"; id = 0; fields := struct { u32 n; }; };
";

    #[test]
    fn clocks_get_the_offset_and_nothing_else_changes() {
        for (clock, expected) in [
            (
                "clock { name = c; freq = 1000000000; offset_s = 5; offset = 7; };",
                "clock { name = c; freq = 1000000000;\n\toffset = -9; };",
            ),
            ("\nclock\n{\n\tname = \"c\";\n\toffset = 1;\n};\n", "\nclock\n{\n\tname = \"c\";\n\toffset = -9;\n};\n"),
            (
                "clock { name = c; };clock { name = d; };",
                "clock { name = c;\n\toffset = -9; };clock { name = d;\n\toffset = -9; };",
            ),
        ] {
            let text =
                aligned(format!("{TRACE}{clock}").as_bytes(), -9).map(|text| String::from_utf8(text).expect("text"));
            assert_eq!(text, Some(format!("{TRACE}{expected}")));
        }
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for text in [TRACE.to_owned(), format!("{TRACE}clock {{ name = c; freq = 5; }};"), "\u{fffd}".to_owned()] {
            assert_eq!(aligned(text.as_bytes(), 3), None, "{text}");
        }
    }
}
