//! Words of a filter.

use super::error::FilterError;
use super::number::Number;
use super::pattern::{Pattern, Symbol};
use std::ops::Range;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A field, or `true` and `false`.
    Name,
    Number(Number),
    Text(Pattern),
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
    End,
}

/// Longer ones first.
const SYMBOLS: [&str; 17] =
    ["||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "|", "^", "&", "!", "~", "-", "("];

/// Cuts a filter into words.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next word, and its place.
    pub(super) fn next(&mut self) -> Result<(Token, Range<usize>), FilterError> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let (start, rest) = (self.at, self.rest());
        let token = match rest.chars().next() {
            None => Token::End,
            Some('"') => self.text()?,
            Some('0'..='9') => self.number()?,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                self.take(|c| c.is_ascii_alphanumeric() || c == '_');
                Token::Name
            }
            Some(')') => {
                self.at += 1;
                Token::Symbol(")")
            }
            Some(c) => match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
                Some(symbol) => {
                    self.at += symbol.len();
                    Token::Symbol(symbol)
                }
                None => return Err(self.error(start..start + c.len_utf8(), stranger(c))),
            },
        };
        Ok((token, start..self.at))
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Goes on while `wanted` holds, and gives what was passed.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = rest.find(|c| !wanted(c)).map_or(rest, |end| &rest[..end]);
        self.at += taken.len();
        taken
    }

    fn error(&self, place: Range<usize>, reason: impl Into<String>) -> FilterError {
        FilterError::new(self.text, place, reason)
    }

    fn number(&mut self) -> Result<Token, FilterError> {
        let start = self.at;
        let mut word = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        // The sign of an exponent.
        if !word.starts_with("0x") && word.ends_with(['e', 'E']) && self.rest().starts_with(['+', '-']) {
            self.at += 1;
            self.take(|c| c.is_ascii_digit() || c == '_');
            word = &self.text[start..self.at];
        }
        let place = start..self.at;
        let plain = word.replace('_', "");
        let (radix, digits) = match plain.get(..2) {
            Some("0x") => (16, &plain[2..]),
            Some("0o") => (8, &plain[2..]),
            Some("0b") => (2, &plain[2..]),
            _ => (10, plain.as_str()),
        };
        if let Ok(value) = u64::from_str_radix(digits, radix) {
            return Ok(Token::Number(Number::Integer(value.into())));
        }
        if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
            return Err(self.error(place, "this number does not fit 64 bits"));
        }
        let is_float =
            radix == 10 && plain.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
        match plain.parse::<f64>() {
            Ok(value) if is_float && value.is_finite() => Ok(Token::Number(Number::Float(value))),
            Ok(_) if is_float => Err(self.error(place, "this number is too large")),
            _ => Err(self.error(place, "this is no number; expected for example 42, 0xff, 0o17, 0b11, 1.5 or 1e9")),
        }
    }

    fn text(&mut self) -> Result<Token, FilterError> {
        let start = self.at;
        self.at += 1;
        let mut symbols = Vec::new();
        loop {
            let at = self.at;
            let Some(c) = self.rest().chars().next() else {
                return Err(self.error(start..start + 1, "this text has no end: `\"` is missing"));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(Token::Text(Pattern::new(symbols))),
                '*' => symbols.push(Symbol::Any),
                '?' => symbols.push(Symbol::One),
                '\\' => symbols.push(Symbol::Byte(self.escape(at)?)),
                c => symbols.extend(c.encode_utf8(&mut [0; 4]).bytes().map(Symbol::Byte)),
            }
        }
    }

    /// What stands behind the backslash at `start`.
    fn escape(&mut self, start: usize) -> Result<u8, FilterError> {
        let c = self.rest().chars().next();
        self.at += c.map_or(0, char::len_utf8);
        let byte = match c {
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('0') => 0,
            Some(c @ ('\\' | '"' | '*' | '?')) => c as u8,
            Some('x') => {
                let digits = self.rest().get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(byte) = byte else {
                    return Err(self.error(start..self.at, "two hexadecimal digits are missing, as in \\x1f"));
                };
                self.at += 2;
                byte
            }
            _ => {
                let known = "expected \\\\, \\\", \\*, \\?, \\n, \\r, \\t, \\0 or \\x1f";
                return Err(self.error(start..self.at, format!("there is no such escape; {known}")));
            }
        };
        Ok(byte)
    }
}

fn stranger(c: char) -> String {
    match c {
        '=' => "one `=` says nothing here; equality is `==`".to_owned(),
        '\'' => "text stands in double quotes".to_owned(),
        '+' | '*' | '/' | '%' => format!("there is no `{c}`: filters compare and work on bits, and do not calculate"),
        c => format!("`{}` has no meaning here", c.escape_debug()),
    }
}
