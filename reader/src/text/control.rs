//! Terminal control characters: the text of a trace must not control the terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// True if a terminal acts on this character instead of showing it: control characters (C0, DEL and C1), line and paragraph separators, and
/// characters that change the direction of text, which can make a line look like another one.
pub fn is_control(c: char) -> bool {
    let is_directional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_directional
}

/// The text with these characters as `\u{1b}`, except those in `kept`.
///
/// ```
/// use tracepoint_reader::text::escape_controls;
///
/// assert_eq!(escape_controls("a\tb\u{1b}[1m\u{9b}\u{7f}\n", &['\n', '\t']), "a\tb\\u{1b}[1m\\u{9b}\\u{7f}\n");
/// ```
pub fn escape_controls<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_escaped = |c: char| is_control(c) && !kept.contains(&c);
    if !text.contains(is_escaped) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            // Writing to memory cannot fail.
            let _ = write!(escaped, "{}", c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}
