//! The grammar of globs.
//!
//! ```text
//! glob   = { "*" | "?" | set | escape | character }
//! set    = "[" [ "!" ] member { member } "]"            the first member may be "]"
//! member = item [ "-" item ]
//! item   = escape | character
//! escape = "\\" | "\"" | "\*" | "\?" | "\[" | "\]" | "\-" | "\!" | "\n" | "\r" | "\t" | "\0" | "\x" and two hexadecimal digits
//! ```

use super::{Set, Symbol};
use crate::syntax::SyntaxError;
use std::ops::RangeInclusive;
use winnow::combinator::{not, opt, preceded};
use winnow::stream::Location;
use winnow::token::{any, take_while};
use winnow::{LocatingSlice, Parser};

type Input<'t> = LocatingSlice<&'t str>;
type Parsed<T> = Result<T, SyntaxError>;

pub(super) fn parse(text: &str) -> Parsed<Vec<Symbol>> {
    let mut input = Input::new(text);
    let mut symbols = Vec::new();
    loop {
        let start = input.current_token_start();
        match opt(any).parse_next(&mut input)? {
            None => return Ok(symbols),
            // Two stars are equivalent to one.
            Some('*') if symbols.last() == Some(&Symbol::Any) => {}
            Some('*') => symbols.push(Symbol::Any),
            Some('?') => symbols.push(Symbol::One),
            Some('[') => symbols.push(Symbol::Set(Box::new(set(&mut input, start)?))),
            Some('\\') => symbols.push(Symbol::Byte(escape(&mut input, start)?)),
            Some(c) => symbols.extend(c.encode_utf8(&mut [0; 4]).bytes().map(Symbol::Byte)),
        }
    }
}

/// Reads the rest of a set after the `[` at `start`.
fn set(input: &mut Input<'_>, start: usize) -> Parsed<Set> {
    let excludes = opt('!').parse_next(input)?.is_some();
    let mut ranges = Vec::new();
    while ranges.is_empty() || opt(']').parse_next(input)?.is_none() {
        ranges.push(member(input, start)?);
    }
    Ok(Set { excludes, ranges })
}

/// Reads a character, or a range of characters, of the set that begins at `start`.
fn member(input: &mut Input<'_>, start: usize) -> Parsed<RangeInclusive<char>> {
    let from = input.current_token_start();
    let first = item(input, start)?;
    if opt(preceded('-', not(']'))).parse_next(input)?.is_none() {
        return Ok(first..=first);
    }
    let last = item(input, start)?;
    if last < first {
        return Err(SyntaxError::at(
            from..input.current_token_start(),
            "this range is empty: its end is before its start",
        ));
    }
    Ok(first..=last)
}

fn item(input: &mut Input<'_>, set: usize) -> Parsed<char> {
    let start = input.current_token_start();
    match opt(any).parse_next(input)? {
        Some('\\') => {
            let byte = escape(input, start)?;
            if byte.is_ascii() {
                return Ok(char::from(byte));
            }
            Err(SyntaxError::at(
                start..input.current_token_start(),
                "this byte is not a character; a set has characters",
            ))
        }
        Some(c) => Ok(c),
        None => Err(SyntaxError::at(set..set + 1, "this `[` is not closed; `\\[` is the character")),
    }
}

/// Reads the rest of an escape after the backslash at `start`.
fn escape(input: &mut Input<'_>, start: usize) -> Parsed<u8> {
    let byte = match opt(any).parse_next(input)? {
        Some('n') => b'\n',
        Some('r') => b'\r',
        Some('t') => b'\t',
        Some('0') => 0,
        Some(c @ ('\\' | '"' | '*' | '?' | '[' | ']' | '-' | '!')) => c as u8,
        Some('x') => {
            let place = start..input.current_token_start();
            let digits = take_while(2, |c: char| c.is_ascii_hexdigit());
            let byte = opt(digits.verify_map(|digits| u8::from_str_radix(digits, 16).ok())).parse_next(input)?;
            byte.ok_or_else(|| SyntaxError::at(place, "two hexadecimal digits are missing, as in \\x1f"))?
        }
        _ => {
            let known = r#"expected \\, \", \*, \?, \[, \], \-, \!, \n, \r, \t, \0 or \x1f"#;
            let place = start..input.current_token_start();
            return Err(SyntaxError::at(place, format!("there is no such escape; {known}")));
        }
    };
    Ok(byte)
}
