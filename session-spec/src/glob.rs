//! Globs: one dialect for names of events, paths of programs, and texts in filters.
//!
//! `*` matches any bytes or none, `?` one character, `[abc]`, `[a-z]` and `[!a]` one character of a set, and `\*`, `\?`, `\[` that
//! character. Everything else matches itself. A glob matches whole texts. `docs/filters.md` describes it for users; the grammar is in
//! `glob/syntax.rs`.
//!
//! Texts are bytes that need not be UTF-8, because fields of events are matched in place, at each event. Matching allocates nothing, and
//! takes at most as many steps as the number of bytes in the text times the length of the longest piece between two stars.

mod syntax;
mod text;

use crate::syntax::SyntaxError;
use std::ops::RangeInclusive;

pub(crate) use text::Text;

/// One step of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Symbol {
    /// This byte.
    Byte(u8),
    /// `?`: one character; where the bytes are not UTF-8, one byte and the continuation bytes after it.
    One,
    /// `[…]`: one character of a set. Bytes that are not UTF-8 are in no set.
    Set(Box<Set>),
    /// `*`: any bytes, or none.
    Any,
}

/// The characters in these ranges; with `!`, the characters outside them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set {
    excludes: bool,
    ranges: Vec<RangeInclusive<char>>,
}

/// A pattern for texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Pattern);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// Exactly these bytes.
    Exact(Box<[u8]>),
    /// At least one symbol is not a byte.
    Symbols(Box<[Symbol]>),
}

impl Glob {
    /// Reads a glob.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let symbols = syntax::parse(text)?;
        let byte = |symbol: &Symbol| if let Symbol::Byte(byte) = symbol { Some(*byte) } else { None };
        Ok(Self(match symbols.iter().map(byte).collect::<Option<Vec<u8>>>() {
            Some(bytes) => Pattern::Exact(bytes.into()),
            None => Pattern::Symbols(symbols.into()),
        }))
    }

    /// Matches only the empty text.
    pub(crate) fn empty_text() -> Self {
        Self(Pattern::Exact(Box::default()))
    }

    /// Returns whether the whole text matches.
    #[inline]
    pub(crate) fn matches(&self, text: Text<'_>) -> bool {
        match &self.0 {
            Pattern::Exact(bytes) => text.same(Text::Bytes(bytes)),
            // One copy of the code for each kind of text, so that the kind is not tested at each byte.
            Pattern::Symbols(symbols) => match text {
                Text::Bytes(bytes) => matches_symbols(symbols, Text::Bytes(bytes)),
                Text::Elements(elements) => matches_symbols(symbols, Text::Elements(elements)),
            },
        }
    }

    /// Returns whether a name or a path matches.
    pub fn matches_str(&self, text: &str) -> bool {
        self.matches(Text::Bytes(text.as_bytes()))
    }
}

impl Set {
    fn contains(&self, c: char) -> bool {
        self.ranges.iter().any(|range| range.contains(&c)) != self.excludes
    }
}

/// Each star takes as few bytes as possible. When a later symbol fails, only the last star takes one more byte: it can take whatever an
/// earlier star could take in addition.
#[inline(always)]
fn matches_symbols(symbols: &[Symbol], text: Text<'_>) -> bool {
    let (mut at, mut next) = (0, 0);
    // The symbol after the last star, and the place where its text begins.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let after = match symbols.get(next) {
            Some(Symbol::Any) => {
                next += 1;
                if next == symbols.len() {
                    return true;
                }
                at = first_candidate(&symbols[next], text, at);
                retry = Some((next, at));
                continue;
            }
            Some(Symbol::Byte(byte)) if text.at(at) == Some(*byte) => Some(at + 1),
            Some(Symbol::One) if at < text.len() => Some(text.character_end(at)),
            Some(Symbol::Set(set)) if at < text.len() => {
                text.character(at).and_then(|(c, end)| set.contains(c).then_some(end))
            }
            None if at == text.len() => return true,
            _ => None,
        };
        if let Some(after) = after {
            (at, next) = (after, next + 1);
            continue;
        }
        let Some((symbol, from)) = retry.filter(|(_, from)| *from < text.len()) else { return false };
        (at, next) = (first_candidate(&symbols[symbol], text, from + 1), symbol);
        retry = Some((symbol, at));
    }
}

/// Finds the first place from `at` on where `symbol` may match. A byte is searched for in a separate, short loop.
#[inline(always)]
fn first_candidate(symbol: &Symbol, text: Text<'_>, mut at: usize) -> usize {
    if let Symbol::Byte(byte) = symbol {
        while text.at(at).is_some_and(|found| found != *byte) {
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// One symbol of the reference definition: its kind, and whether it takes this character.
    #[derive(Clone, Copy, Debug)]
    enum Plain {
        Any,
        Takes(fn(char) -> bool),
    }

    /// The reference definition, which tries all combinations.
    fn matches_plainly(pattern: &[Plain], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((Plain::Any, rest)) => (0..=text.len()).any(|n| matches_plainly(rest, &text[n..])),
            Some((Plain::Takes(takes), rest)) => {
                text.first().is_some_and(|c| takes(*c)) && matches_plainly(rest, &text[1..])
            }
        }
    }

    /// All words of up to `longest` letters.
    fn words<T: Copy>(letters: &[T], longest: usize) -> Vec<Vec<T>> {
        let mut words = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..longest {
            let to = words.len();
            for index in from..to {
                words.extend(letters.iter().map(|letter| [&words[index][..], &[*letter]].concat()).collect::<Vec<_>>());
            }
            from = to;
        }
        words
    }

    #[test]
    fn matches_agree_with_a_reference_implementation() {
        let symbols: [(&str, Plain); 6] = [
            ("a", Plain::Takes(|c| c == 'a')),
            ("é", Plain::Takes(|c| c == 'é')),
            ("?", Plain::Takes(|_| true)),
            ("[a-cé]", Plain::Takes(|c| matches!(c, 'a'..='c' | 'é'))),
            ("[!é]", Plain::Takes(|c| c != 'é')),
            ("*", Plain::Any),
        ];
        let texts = words(&['a', 'b', 'é'], 5);
        for pattern in words(&symbols, 4) {
            let written: String = pattern.iter().map(|(text, _)| *text).collect();
            let plain: Vec<Plain> = pattern.iter().map(|(_, plain)| *plain).collect();
            let compiled = glob(&written);
            for text in &texts {
                let expected = matches_plainly(&plain, text);
                let text: String = text.iter().collect();
                assert_eq!(compiled.matches_str(&text), expected, "{written} on {text}");
            }
        }
    }

    #[test]
    fn sets_and_escapes() {
        for (pattern, text, expected) in [
            ("a:**", "a:b/c", true),
            ("[]]", "]", true),
            ("[!]]", "]", false),
            ("[a-]", "-", true),
            ("[--9]", "/", true),
            ("[\\]-]x", "]x", true),
            ("[\\]-]x", "-x", true),
            ("\\[a\\]", "[a]", true),
            ("\\*\\x41", "*A", true),
            ("a-b!", "a-b!", true),
            ("[^a]", "b", false),
            ("[!a]", "", false),
        ] {
            assert_eq!(glob(pattern).matches_str(text), expected, "{pattern} on {text}");
        }
        for (wrong, place, part) in [
            ("ab[", 2..3, "not closed"),
            ("[!]", 0..1, "not closed"),
            ("x[z-a]", 2..5, "is empty"),
            ("é\\q", 2..4, "no such escape"),
            ("\\", 0..1, "no such escape"),
            ("\\xg0", 0..2, "two hexadecimal digits"),
            ("[\\xff]", 1..5, "is not a character"),
        ] {
            let (found, reason) = Glob::parse(wrong).expect_err(wrong).into_parts();
            assert!(found == place && reason.contains(part), "{wrong}: {found:?}, {reason}");
        }
    }

    /// A matcher that tries all combinations would not finish on these.
    #[test]
    fn matching_many_stars_takes_linear_time() {
        let text = "a".repeat(2000);
        assert!(!glob(&"a*".repeat(200).replace("a*", "a*a*b*")).matches(Text::Bytes(text.as_bytes())));
        assert!(glob(&"a*".repeat(200)).matches(Text::Bytes(text.as_bytes())));
    }

    /// A run of continuation bytes is not counted as one long character.
    #[test]
    fn a_character_has_four_bytes_at_most() {
        let text = [0x80; 9];
        assert!(glob("???").matches(Text::Bytes(&text)));
        assert!(!glob("??").matches(Text::Bytes(&text)));
        let text = vec![0x80; 1 << 20];
        assert!(!glob("*?x").matches(Text::Bytes(&text)));
    }

    #[test]
    fn invalid_utf8_is_matched_bytewise() {
        assert!(glob("?b").matches(Text::Bytes(&[0xff, b'b'])));
        assert!(!glob("[!a]b").matches(Text::Bytes(&[0xff, b'b'])));
        assert!(glob("*\u{1}").matches(Text::Bytes(&[0x80, 0x80, 1])));
    }
}
