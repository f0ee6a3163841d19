//! The tokens of the metadata: parsers for [winnow]. Each one also consumes the white space after its token, so that the input always starts
//! with a token.

use super::declarations::Declarations;
use super::types::ByteOrder;
use winnow::ModalResult;
use winnow::combinator::{alt, eof, opt, peek, preceded, repeat, separated, terminated};
use winnow::error::{ErrMode, ParserError};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Range, Stateful};
use winnow::token::{any, one_of, take_till, take_until, take_while};

/// The remaining text, and the declarations so far.
pub(super) type Input<'a> = Stateful<LocatingSlice<&'a str>, Declarations>;
/// The result of a parser. A final [`ParseError`] is [`ErrMode::Cut`]; otherwise another alternative may match.
pub(super) type Parsed<T> = ModalResult<T, ParseError>;

/// Input for all of `text`, without declarations.
pub(super) fn input(text: &str, native: ByteOrder) -> Input<'_> {
    Input { input: LocatingSlice::new(text), state: Declarations::new(native) }
}

/// The position and the reason of an error in the text.
#[derive(Debug)]
pub(super) struct ParseError {
    pub(super) offset: usize,
    pub(super) reason: String,
}

impl<'a> ParserError<Input<'a>> for ParseError {
    type Inner = Self;

    fn from_input(input: &Input<'a>) -> Self {
        Self { offset: input.current_token_start(), reason: String::new() }
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// A token, for messages and for a scan of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier or a keyword; the context decides which.
    Word(&'a str),
    /// An unsigned constant.
    Number(u64),
    /// A string or a character literal, unescaped.
    Text(String),
    /// Punctuation: `:=`, `...`, or a single character.
    Mark(&'a str),
    /// The end of the text.
    End,
}

/// A final error at the next token.
pub(super) fn parse_error(input: &Input<'_>, reason: impl Into<String>) -> ErrMode<ParseError> {
    parse_error_at(input.current_token_start(), reason)
}

pub(super) fn parse_error_at(offset: usize, reason: impl Into<String>) -> ErrMode<ParseError> {
    ErrMode::Cut(ParseError { offset, reason: reason.into() })
}

/// Shortens and escapes a name from the text for a message, so that it cannot control a terminal.
pub(super) fn shorten(name: &str) -> String {
    let mut short: String = name.chars().take(60).flat_map(char::escape_debug).collect();
    if name.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

/// Any token.
pub(super) fn token<'a>(input: &mut Input<'a>) -> Parsed<Token<'a>> {
    let token = alt((
        word.map(Token::Word),
        number.map(Token::Number),
        text.map(Token::Text),
        terminated(any_mark, blank).map(Token::Mark),
        eof.value(Token::End),
    ));
    let strange =
        |input: &Input<'_>| format!("the character {:?} has no meaning here", input.chars().next().unwrap_or('\0'));
    or_parse_error(input, token, |input| Ok(strange(input)))
}

/// So many characters of a set, which is a function pointer: the parser is compiled once for all sets.
fn characters<'a>(
    count: impl Into<Range>,
    set: fn(char) -> bool,
) -> impl Parser<Input<'a>, &'a str, ErrMode<ParseError>> {
    take_while(count, set)
}

/// An identifier or a keyword.
pub(super) fn word<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    let first = one_of(('a'..='z', 'A'..='Z', '_'));
    let rest = characters(0.., |c| c.is_ascii_alphanumeric() || c == '_');
    terminated((first, rest).take(), blank).parse_next(input)
}

/// Matches this keyword.
pub(super) fn keyword<'a>(keyword: &'static str) -> impl Parser<Input<'a>, &'a str, ErrMode<ParseError>> {
    word.verify(move |found: &str| found == keyword)
}

/// Returns true if one of these keywords comes next.
pub(super) fn at_keyword(input: &mut Input<'_>, keywords: &[&str]) -> Parsed<bool> {
    peek(opt(word.verify(|found: &str| keywords.contains(&found)))).map(|found| found.is_some()).parse_next(input)
}

/// An unsigned constant in C's bases, with C's suffixes.
pub(super) fn number(input: &mut Input<'_>) -> Parsed<u64> {
    let offset = input.current_token_start();
    let digits = (one_of('0'..='9'), characters(0.., |c| c.is_ascii_alphanumeric())).take().parse_next(input)?;
    let plain = digits.to_ascii_lowercase();
    let (radix, body) = match plain.as_bytes() {
        [b'0', b'x', ..] => (16, &plain[2..]),
        [b'0', b'b', ..] => (2, &plain[2..]),
        [b'0', _, ..] => (8, &plain[1..]),
        _ => (10, &plain[..]),
    };
    let body = body.trim_end_matches(['u', 'l']);
    let body = if body.is_empty() && radix == 8 { "0" } else { body };
    let number = u64::from_str_radix(body, radix)
        .map_err(|_| parse_error_at(offset, format!("`{}` is not a number of at most 64 bits", shorten(digits))))?;
    blank(input)?;
    Ok(number)
}

/// A part of a string.
enum Part<'a> {
    Text(&'a str),
    Byte(u8),
}

/// A string with C's escapes, or a character literal, which babeltrace2 also treats as a string.
pub(super) fn text(input: &mut Input<'_>) -> Parsed<String> {
    let offset = input.current_token_start();
    let quote = one_of(['"', '\'']).parse_next(input)?;
    let part = alt((take_till(1.., [quote, '\\']).map(Part::Text), preceded('\\', escape)));
    let parts = repeat(0.., part).fold(Vec::new, |mut bytes, part| {
        match part {
            Part::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            Part::Byte(byte) => bytes.push(byte),
        }
        bytes
    });
    let closed = terminated(parts, quote).parse_next(input);
    let reason = || format!("a string is not closed: add `{quote}`");
    let bytes = closed.map_err(|_: ErrMode<ParseError>| parse_error_at(offset, reason()))?;
    blank(input)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The character after a backslash.
fn escape<'a>(input: &mut Input<'a>) -> Parsed<Part<'a>> {
    let byte = |digits: &str, radix| Part::Byte((u32::from_str_radix(digits, radix).unwrap_or(0) & 0xFF) as u8);
    let octal = characters(1..=3, |c| c.is_digit(8)).map(|digits| byte(digits, 8));
    let hexadecimal = preceded('x', characters(0..=2, |c| c.is_ascii_hexdigit())).map(|digits| byte(digits, 16));
    let other = any.take().map(|letter: &str| match letter {
        "a" => Part::Byte(0x07),
        "b" => Part::Byte(0x08),
        "e" => Part::Byte(0x1B),
        "f" => Part::Byte(0x0C),
        "n" => Part::Byte(b'\n'),
        "r" => Part::Byte(b'\r'),
        "t" => Part::Byte(b'\t'),
        "v" => Part::Byte(0x0B),
        other => Part::Text(other),
    });
    alt((octal, hexadecimal, other)).parse_next(input)
}

fn any_mark<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    let single = one_of(['{', '}', '[', ']', '(', ')', '<', '>', ';', ':', ',', '=', '.', '-', '+']);
    alt((":=", "...", single.take())).parse_next(input)
}

/// Matches this punctuation.
pub(super) fn mark<'a>(mark: &'static str) -> impl Parser<Input<'a>, &'a str, ErrMode<ParseError>> {
    terminated(any_mark.verify(move |found: &str| found == mark), blank)
}

/// Returns true and consumes this punctuation if it comes next.
pub(super) fn eat(input: &mut Input<'_>, expected: &'static str) -> Parsed<bool> {
    opt(mark(expected)).map(|found| found.is_some()).parse_next(input)
}

/// Returns true if this punctuation comes next. Does not consume it.
pub(super) fn at(input: &mut Input<'_>, expected: &'static str) -> Parsed<bool> {
    peek(opt(mark(expected))).map(|found| found.is_some()).parse_next(input)
}

/// This punctuation, or a final error.
pub(super) fn expect(input: &mut Input<'_>, expected: &'static str) -> Parsed<()> {
    or_parse_error(input, mark(expected).void(), |input| Ok(format!("expected `{expected}`, found {}", found(input)?)))
}

/// A name, or a final error.
pub(super) fn expect_name<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    or_parse_error(input, word, |input| Ok(format!("expected a name, found {}", found(input)?)))
}

/// An unsigned number, or a final error.
pub(super) fn expect_number(input: &mut Input<'_>) -> Parsed<u64> {
    or_parse_error(input, number, |input| Ok(format!("expected an unsigned number, found {}", found(input)?)))
}

/// Names joined by dots, such as `stream.packet.context`.
pub(super) fn path(input: &mut Input<'_>) -> Parsed<Vec<String>> {
    separated(1.., expect_name.map(str::to_owned), mark(".")).parse_next(input)
}

/// A number with an optional sign, within the range of 64-bit numbers.
pub(super) fn signed_number(input: &mut Input<'_>) -> Parsed<i128> {
    let sign = opt(alt((mark("-"), mark("+")))).parse_next(input)?;
    let value = i128::from(expect_number(input)?);
    match sign {
        Some("-") if value > 1 << 63 => {
            Err(parse_error(input, "a negative number is below the smallest 64-bit number"))
        }
        Some("-") => Ok(-value),
        _ => Ok(value),
    }
}

/// Runs a parser. If it does not match, returns a final error with this reason.
fn or_parse_error<'a, T>(
    input: &mut Input<'a>,
    mut parser: impl Parser<Input<'a>, T, ErrMode<ParseError>>,
    reason: impl FnOnce(&mut Input<'a>) -> Parsed<String>,
) -> Parsed<T> {
    match parser.parse_next(input) {
        Err(ErrMode::Backtrack(_)) => {
            let reason = reason(input)?;
            Err(parse_error(input, reason))
        }
        outcome => outcome,
    }
}

/// The next token in the form used by messages.
pub(super) fn found(input: &mut Input<'_>) -> Parsed<String> {
    Ok(match peek(token).parse_next(input)? {
        Token::Word(word) => format!("`{}`", shorten(word)),
        Token::Number(number) => format!("`{number}`"),
        Token::Text(text) => format!("the string \"{}\"", shorten(&text)),
        Token::Mark(mark) => format!("`{mark}`"),
        Token::End => "the end of the text".to_owned(),
    })
}

/// White space and comments.
pub(super) fn blank(input: &mut Input<'_>) -> Parsed<()> {
    let space = characters(1.., char::is_whitespace).void();
    let line = ("//", characters(0.., |c| c != '\n')).void();
    repeat(0.., alt((space, line, block_comment))).parse_next(input)
}

fn block_comment(input: &mut Input<'_>) -> Parsed<()> {
    let offset = input.current_token_start();
    "/*".parse_next(input)?;
    let rest = (take_until(0.., "*/"), "*/").void().parse_next(input);
    rest.map_err(|_: ErrMode<ParseError>| parse_error_at(offset, "a comment is not closed: add `*/`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut input = input(text, ByteOrder::Little);
        blank(&mut input).unwrap();
        let mut found = Vec::new();
        loop {
            match token(&mut input).unwrap() {
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
    fn character_literals_are_strings() {
        let expected = ["\n", "'", "\"", "A"].map(|text| Token::Text(text.to_owned()));
        assert_eq!(tokens(r#"'\n' '\'' '"' '\x41'"#), expected);
    }

    #[test]
    fn comments_are_blank() {
        assert_eq!(tokens("/**/ a/* b \" */c // d\ne"), [Token::Word("a"), Token::Word("c"), Token::Word("e")]);
    }

    #[test]
    fn the_longest_punctuation_is_matched() {
        assert_eq!(tokens(":=:...."), [Token::Mark(":="), Token::Mark(":"), Token::Mark("..."), Token::Mark(".")]);
    }
}
