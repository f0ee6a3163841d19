//! Numbers and texts in a filter.

use super::duration::{nanoseconds, split_unit};
use super::number::Number;
use super::step::{Input, Parsed, characters};
use crate::glob::Glob;
use crate::syntax::SyntaxError;
use winnow::Parser;
use winnow::combinator::{alt, opt, repeat};
use winnow::stream::Location;
use winnow::token::{any, none_of, one_of};

/// Reads a number, whose first digit comes next. A number with a unit of time is converted to nanoseconds.
pub(super) fn number(input: &mut Input<'_>) -> Parsed<Number> {
    let exponent = (one_of(['e', 'E']), one_of(['+', '-']), characters(0.., |c| c.is_ascii_digit() || c == '_'));
    let plain = characters(1.., |c| c.is_ascii_alphanumeric() || "_.\u{b5}\u{3bc}".contains(c));
    let signed = (characters(1.., |c| c.is_ascii_digit() || "_.".contains(c)), exponent).take();
    let (word, place) = alt((signed, plain)).with_span().parse_next(input)?;
    let word = word.replace('_', "");
    if let Some((digits, unit)) = split_unit(&word) {
        let duration = nanoseconds(digits, unit).map_err(|reason| SyntaxError::at(place, reason))?;
        return Ok(Number::Integer(duration.into()));
    }
    let (radix, digits) = match word.get(..2) {
        Some("0x") => (16, &word[2..]),
        Some("0o") => (8, &word[2..]),
        Some("0b") => (2, &word[2..]),
        _ => (10, word.as_str()),
    };
    if let Ok(value) = u64::from_str_radix(digits, radix) {
        return Ok(Number::Integer(value.into()));
    }
    if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
        return Err(SyntaxError::at(place, "this number does not fit 64 bits"));
    }
    // `inf`, `nan` and the like are names.
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Number::Float(value)),
        Ok(_) => Err(SyntaxError::at(place, "this number is too large")),
        Err(_) => {
            let reason = "this is not a number; expected for example 42, 0xff, 0o17, 0b11, 1.5, 1e9, or a duration: ns, us, \
                          ms, s, min or h";
            Err(SyntaxError::at(place, reason))
        }
    }
}

/// Reads a glob, whose opening quote comes next.
pub(super) fn text(input: &mut Input<'_>) -> Parsed<Glob> {
    let start = input.current_token_start();
    let unit = alt((none_of(['"', '\\']).void(), ('\\', any).void()));
    let (_, glob, close) = ('"', repeat::<_, _, (), _, _>(0.., unit).take(), opt('"')).parse_next(input)?;
    if close.is_none() {
        return Err(SyntaxError::at(start..start + 1, "this text is not closed: `\"` is missing"));
    }
    Glob::parse(glob).map_err(|error| error.moved(start + 1))
}
