//! Text in filters: literals with `*` and `?` in them, and the fields that they are held against.

use tracepoint_core::field::{Elements, Value};

/// What stands in a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// This byte.
    Byte(u8),
    /// `?`: one character; where the bytes are not UTF-8, one byte and the continuation bytes after it.
    One,
    /// `*`: any bytes, or none.
    Any,
}

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// These bytes and no others.
    Exact(Box<[u8]>),
    /// With a `*` or `?` in it.
    Glob(Box<[Symbol]>),
}

/// The text that a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text<'v> {
    Bytes(&'v [u8]),
    /// An array or a sequence of bytes.
    Elements(&'v dyn Elements),
}

impl<'v> Text<'v> {
    /// The text of a field; `None` if it holds none.
    #[inline]
    pub(super) fn of(value: Value<'v>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(Self::Bytes(text.as_bytes())),
            Value::Path(bytes) => Some(Self::Bytes(bytes)),
            Value::Elements(elements) => Some(Self::Elements(elements)),
            _ => None,
        }
    }

    fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Elements(elements) => elements.len(),
        }
    }

    /// The byte at `index`; `None` past the end.
    #[inline]
    fn at(self, index: usize) -> Option<u8> {
        match self {
            Self::Bytes(bytes) => bytes.get(index).copied(),
            Self::Elements(elements) => match elements.get(index) {
                Some(Value::Unsigned(byte)) => Some(byte as u8),
                _ => None,
            },
        }
    }

    /// Whether both have the same bytes.
    pub(super) fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            _ => self.len() == other.len() && (0..self.len()).all(|index| self.at(index) == other.at(index)),
        }
    }
}

impl Pattern {
    pub(super) fn new(mut symbols: Vec<Symbol>) -> Self {
        // Two stars say what one says.
        symbols.dedup_by(|next, before| (*next, *before) == (Symbol::Any, Symbol::Any));
        let byte = |symbol: &Symbol| if let Symbol::Byte(byte) = symbol { Some(*byte) } else { None };
        match symbols.iter().map(byte).collect::<Option<Vec<u8>>>() {
            Some(bytes) => Self::Exact(bytes.into()),
            None => Self::Glob(symbols.into()),
        }
    }

    /// Whether the whole text is as the pattern says. At most as many steps as the text has bytes times the longest piece between two
    /// stars.
    #[inline]
    pub(super) fn matches(&self, text: Text<'_>) -> bool {
        match self {
            Self::Exact(bytes) => text.same(Text::Bytes(bytes)),
            Self::Glob(symbols) => matches_glob(symbols, text),
        }
    }
}

/// Each star takes as little as will do; what was taken for the stars before it need not be changed, because whatever they could take
/// more, this one can.
fn matches_glob(symbols: &[Symbol], text: Text<'_>) -> bool {
    let (mut at, mut next) = (0, 0);
    // Behind the last star: the symbol, and where its text begins.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let after = match symbols.get(next) {
            Some(Symbol::Any) => {
                next += 1;
                if next == symbols.len() {
                    return true;
                }
                retry = Some((next, at));
                continue;
            }
            Some(Symbol::Byte(byte)) if text.at(at) == Some(*byte) => Some(at + 1),
            Some(Symbol::One) if at < text.len() => Some(character_end(text, at)),
            None if at == text.len() => return true,
            _ => None,
        };
        if let Some(after) = after {
            (at, next) = (after, next + 1);
            continue;
        }
        let Some((behind, from)) = retry.filter(|(_, from)| *from < text.len()) else { return false };
        (at, next) = (from + 1, behind);
        retry = Some((behind, at));
    }
}

/// Behind the character that begins at `at`: four bytes at most, also where the text is none.
fn character_end(text: Text<'_>, at: usize) -> usize {
    let goes_on = |end: &usize| text.at(*end).is_some_and(|byte| byte & 0xc0 == 0x80);
    at + 1 + (at + 1..at + 4).take_while(goes_on).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let symbol = |byte| match byte {
            b'*' => Symbol::Any,
            b'?' => Symbol::One,
            byte => Symbol::Byte(byte),
        };
        Pattern::new(text.bytes().map(symbol).collect())
    }

    /// As the pattern is defined, by trying everything.
    fn plainly(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|n| plainly(rest, &text[n..])),
            Some(('?', rest)) => !text.is_empty() && plainly(rest, &text[1..]),
            Some((c, rest)) => text.first() == Some(c) && plainly(rest, &text[1..]),
        }
    }

    /// All patterns and texts of up to five of a few characters.
    #[test]
    fn agrees_with_the_definition() {
        let all = |alphabet: &[char]| {
            let mut words = vec![String::new()];
            let mut from = 0;
            for _ in 0..5 {
                let to = words.len();
                for index in from..to {
                    words.extend(alphabet.iter().map(|c| format!("{}{c}", words[index])).collect::<Vec<_>>());
                }
                from = to;
            }
            words
        };
        let (texts, patterns) = (all(&['a', 'b', 'é']), all(&['a', 'b', '?', '*']));
        for wanted in &patterns {
            let (compiled, symbols) = (pattern(wanted), wanted.chars().collect::<Vec<_>>());
            for text in &texts {
                let expected = plainly(&symbols, &text.chars().collect::<Vec<_>>());
                assert_eq!(compiled.matches(Text::Bytes(text.as_bytes())), expected, "{wanted} on {text}");
            }
        }
    }

    /// Where a matcher that tries everything would be busy for ever.
    #[test]
    fn many_stars_take_no_longer() {
        let text = "a".repeat(2000);
        assert!(!pattern(&"a*".repeat(200).replace("a*", "a*a*b*")).matches(Text::Bytes(text.as_bytes())));
        assert!(pattern(&"a*".repeat(200)).matches(Text::Bytes(text.as_bytes())));
    }

    /// Bytes that only go on, and begin nothing, are no character of a million bytes.
    #[test]
    fn a_character_has_four_bytes_at_most() {
        let text = [0x80; 9];
        assert!(pattern("???").matches(Text::Bytes(&text)));
        assert!(!pattern("??").matches(Text::Bytes(&text)));
        let text = vec![0x80; 1 << 20];
        assert!(!pattern("*?x").matches(Text::Bytes(&text)));
    }

    #[test]
    fn bytes_that_are_no_text() {
        assert!(pattern("?b").matches(Text::Bytes(&[0xff, b'b'])));
        assert!(pattern("*\u{1}").matches(Text::Bytes(&[0x80, 0x80, 1])));
    }
}
