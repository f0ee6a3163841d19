//! Literals, comments and identifiers of TSDL, escaped.

use std::fmt::Write;

/// Returns a string literal, including the quotes.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            // A NUL would end the text in readers written in C, and control characters would reach terminals.
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writes a comment of one or more lines, each indented by `indent`; nothing for an empty text.
pub(super) fn comment(out: &mut String, indent: &str, text: &str) {
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let harmless = text.replace("*/", "* /");
    for (i, line) in harmless.lines().enumerate() {
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = write!(
            out,
            "{}{indent}{} {}",
            if i == 0 { "" } else { "\n" },
            if i == 0 { "/*" } else { " *" },
            line.trim()
        );
    }
    out.push_str(" */\n");
}

/// Returns the name of a field, with a leading underscore so that it is never a keyword. Readers remove the underscore.
pub(super) fn identifier(name: &str) -> String {
    let mut out = String::from("_");
    for c in name.strip_prefix("r#").unwrap_or(name).chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            out.push(c);
        } else {
            // TSDL identifiers are ASCII.
            let _ = write!(out, "u{:x}_", u32::from(c));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_stay_one_token() {
        assert_eq!(literal(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(literal("line\nnext\0"), "\"line\\nnext?\"");
    }

    #[test]
    fn comments_cannot_be_closed_by_their_text() {
        let mut out = String::new();
        comment(&mut out, "\t", " first */ x\nsecond ");
        assert_eq!(out, "\t/* first * / x\n\t * second */\n");
        out.clear();
        comment(&mut out, "", "  ");
        assert_eq!(out, "");
        comment(&mut out, "", "ends in *");
        assert_eq!(out, "/* ends in * */\n");
    }

    #[test]
    fn identifiers_are_ascii_and_no_keywords() {
        assert_eq!(identifier("r#struct"), "_struct");
        assert_eq!(identifier("größe"), "_gruf6_udf_e");
    }
}
