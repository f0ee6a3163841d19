//! Text from traced programs, in the form used by the page.

use tracepoint_reader::text::is_control;

/// Maximum size of a text, in bytes of JSON.
const MAX: usize = 200;

/// The beginning of a text, with control characters replaced by U+FFFD.
pub(super) fn cut(text: &str) -> String {
    let (mut kept, mut size) = (String::new(), 0);
    for c in text.chars() {
        let c = if is_control(c) { char::REPLACEMENT_CHARACTER } else { c };
        size += match c {
            '"' | '\\' => 2,
            // `\u003c`
            '<' => 6,
            c => c.len_utf8(),
        };
        if size > MAX {
            kept.push('…');
            break;
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_as_they_are_written() {
        assert_eq!(cut("a\u{1b}[1m\n"), "a\u{fffd}[1m\u{fffd}");
        for (text, kept) in [("é", 100), ("<", 33), ("\"", 100), ("\0", 66)] {
            let cut = cut(&text.repeat(300));
            assert_eq!(cut.chars().count(), kept + 1, "{text:?}");
            assert!(serde_json::to_string(&cut).unwrap().replace('<', "\\u003c").len() <= MAX + 2 + '…'.len_utf8());
        }
    }
}
