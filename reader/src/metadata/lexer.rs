//! Cuts the metadata text into words, numbers, strings and marks. Nothing is kept but the position, so the memory it
//! needs does not depend on the text.

/// One piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier or a keyword: which of the two, only the place where it stands can tell.
    Word(&'a str),
    /// An unsigned constant.
    Number(u64),
    /// A string, unescaped.
    Text(String),
    /// Punctuation: `:=`, `...`, or a single character.
    Mark(&'static str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// How an error message names it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{}`", shorten(word)),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(text) => format!("the string \"{}\"", shorten(text)),
            Self::Mark(mark) => format!("`{mark}`"),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// Keeps names from outside at a length that fits an error message, and from harming a terminal.
pub(super) fn shorten(name: &str) -> String {
    let mut short: String = name.chars().take(60).flat_map(char::escape_debug).collect();
    if name.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

const MARKS: [&str; 17] = [":=", "...", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", ".", "-", "+"];

/// A position in the text.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Byte offset of what comes next.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes over white space and comments.
    pub(super) fn skip_blank(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let length = if trimmed.starts_with("/*") {
                trimmed.find("*/").ok_or("a comment is not closed: add `*/`")? + 2
            } else if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else {
                return Ok(());
            };
            self.at += length;
        }
    }

    /// The next piece of the text.
    pub(super) fn next(&mut self) -> Result<Token<'a>, String> {
        self.skip_blank()?;
        let rest = self.rest();
        let Some(&first) = rest.as_bytes().first() else {
            return Ok(Token::End);
        };
        if first.is_ascii_alphabetic() || first == b'_' {
            let word = self.take(|b| b.is_ascii_alphanumeric() || b == b'_');
            return Ok(Token::Word(word));
        }
        if first.is_ascii_digit() {
            let digits = self.take(|b| b.is_ascii_alphanumeric());
            return number(digits).map(Token::Number);
        }
        if first == b'"' {
            return self.string().map(Token::Text);
        }
        for mark in MARKS {
            if rest.starts_with(mark) {
                self.at += mark.len();
                return Ok(Token::Mark(mark));
            }
        }
        let strange = rest.chars().next().unwrap_or('\0');
        Err(format!("the character {strange:?} has no meaning here"))
    }

    fn take(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(|b| !belongs(b)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A string with C's escapes, after its opening quote.
    fn string(&mut self) -> Result<String, String> {
        const OPEN: &str = "a string is not closed: add `\"`";
        let rest = &self.rest()[1..];
        let mut bytes = Vec::new();
        let mut input = rest.bytes().enumerate().peekable();
        while let Some((at, byte)) = input.next() {
            match byte {
                b'"' => {
                    self.at += at + 2;
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
                b'\\' => {
                    let (_, escape) = input.next().ok_or(OPEN)?;
                    let (radix, mut value, most) = match escape {
                        b'x' => (16, 0, 2),
                        b'0'..=b'7' => (8, u32::from(escape - b'0'), 2),
                        other => {
                            bytes.push(unescape(other));
                            continue;
                        }
                    };
                    for _ in 0..most {
                        let Some(digit) = input.peek().and_then(|&(_, b)| char::from(b).to_digit(radix)) else {
                            break;
                        };
                        value = value * radix + digit;
                        input.next();
                    }
                    bytes.push((value & 0xFF) as u8);
                }
                other => bytes.push(other),
            }
        }
        Err(OPEN.to_owned())
    }
}

fn unescape(escape: u8) -> u8 {
    match escape {
        b'a' => 0x07,
        b'b' => 0x08,
        b'e' => 0x1B,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0B,
        other => other,
    }
}

/// A constant in C's bases, with C's suffixes.
fn number(digits: &str) -> Result<u64, String> {
    let plain = digits.to_ascii_lowercase();
    let (radix, body) = if let Some(body) = plain.strip_prefix("0x") {
        (16, body)
    } else if let Some(body) = plain.strip_prefix("0b") {
        (2, body)
    } else if plain.len() > 1 && plain.starts_with('0') {
        (8, &plain[1..])
    } else {
        (10, plain.as_str())
    };
    let body = body.trim_end_matches(['u', 'l']);
    let body = if body.is_empty() && radix == 8 { "0" } else { body };
    u64::from_str_radix(body, radix).map_err(|_| format!("`{}` is not a number of at most 64 bits", shorten(digits)))
}

#[cfg(test)]
mod tests {
    use super::{Lexer, Token};

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            match lexer.next().unwrap() {
                Token::End => return found,
                token => found.push(token),
            }
        }
    }

    #[test]
    fn numbers_have_c_bases_and_suffixes() {
        let numbers = [0, 10, 16, 8, 5, 7];
        let expected: Vec<_> = numbers.into_iter().map(Token::Number).collect();
        assert_eq!(tokens("0 10 0x10 010 0b101 7ULL"), expected);
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(tokens(r#""a\"b\\\n\x41\101é""#), [Token::Text("a\"b\\\nAAé".to_owned())]);
    }

    #[test]
    fn comments_are_blank() {
        assert_eq!(tokens("a/* b \" */c // d\ne"), [Token::Word("a"), Token::Word("c"), Token::Word("e")]);
    }
}
