//! Specifiers of integers and floating-point numbers.

use super::tokens::{
    Input, Parsed, Token, eat, expect, expect_name, expect_number, number, parse_error, path, shorten, text, token,
};
use super::types::{Base, ByteOrder, Float, Integer};
use winnow::combinator::{alt, opt, peek};
use winnow::prelude::*;

/// Maximum alignment, in bits.
const MAX_ALIGN: u64 = 1 << 16;

/// Parses `{ name = value; … }` after `integer` and similar words. The rest of a value that `take` does not consume is skipped.
pub(super) fn attributes<'a>(
    input: &mut Input<'a>,
    mut take: impl FnMut(&mut Input<'a>, &str) -> Parsed<()>,
) -> Parsed<()> {
    expect(input, "{")?;
    while !eat(input, "}")? {
        let name = expect_name(input)?;
        expect(input, "=")?;
        take(input, name)?;
        while !eat(input, ";")? {
            match peek(token).parse_next(input)? {
                Token::End | Token::Mark("}") => return expect(input, ";"),
                _ => token.void().parse_next(input)?,
            }
        }
    }
    Ok(())
}

pub(super) fn integer(input: &mut Input<'_>) -> Parsed<Integer> {
    let (mut bits, mut align) = (0, 0);
    let mut integer = Integer {
        bits: 0,
        align: 0,
        signed: false,
        base: Base::Decimal,
        order: input.state.native,
        text: false,
        truth: false,
        duration: false,
        clock: None,
        slot: None,
    };
    attributes(input, |input, name| {
        match name {
            "size" => bits = expect_number(input)?,
            "align" => align = alignment(input)?,
            "signed" => integer.signed = boolean(input)?,
            "base" => integer.base = base(input)?,
            "byte_order" => integer.order = byte_order(input)?,
            "encoding" => integer.text = matches!(expect_name(input)?, "UTF8" | "utf8" | "ASCII" | "ascii"),
            "map" => integer.clock = Some(mapped_clock(input)?),
            _ => {}
        }
        Ok(())
    })?;
    if !(1..=64).contains(&bits) {
        return Err(parse_error(input, "an integer needs a `size` of 1 to 64 bits"));
    }
    integer.bits = bits as u8;
    integer.align = match align {
        0 if bits % 8 == 0 => 8,
        0 => 1,
        given => given,
    };
    Ok(integer)
}

pub(super) fn float(input: &mut Input<'_>) -> Parsed<Float> {
    let (mut exponent, mut mantissa, mut align) = (0, 0, 8);
    let mut order = input.state.native;
    attributes(input, |input, name| {
        match name {
            "exp_dig" => exponent = expect_number(input)?,
            "mant_dig" => mantissa = expect_number(input)?,
            "align" => align = alignment(input)?,
            "byte_order" => order = byte_order(input)?,
            _ => {}
        }
        Ok(())
    })?;
    let bits = match (exponent, mantissa) {
        (8, 24) => 32,
        (11, 53) => 64,
        _ => {
            let sizes = "exp_dig 8 and mant_dig 24, or exp_dig 11 and mant_dig 53";
            return Err(parse_error(input, format!("a floating-point number must have {sizes}")));
        }
    };
    Ok(Float { bits, align, order })
}

pub(super) fn alignment(input: &mut Input<'_>) -> Parsed<u32> {
    let align = expect_number(input)?;
    if !align.is_power_of_two() || align > MAX_ALIGN {
        return Err(parse_error(input, format!("an alignment must be a power of two of at most {MAX_ALIGN} bits")));
    }
    Ok(align as u32)
}

fn boolean(input: &mut Input<'_>) -> Parsed<bool> {
    if let Some(number) = opt(number).parse_next(input)? {
        return Ok(number != 0);
    }
    match expect_name(input)? {
        "true" | "TRUE" => Ok(true),
        "false" | "FALSE" => Ok(false),
        other => Err(parse_error(input, format!("`{}` is neither true nor false", shorten(other)))),
    }
}

fn base(input: &mut Input<'_>) -> Parsed<Base> {
    let mut name = alt((number.map(|number| number.to_string()), text, expect_name.map(str::to_owned)));
    match name.parse_next(input)?.as_str() {
        "2" | "binary" | "b" => Ok(Base::Binary),
        "8" | "octal" | "oct" | "o" => Ok(Base::Octal),
        "10" | "decimal" | "dec" | "d" | "i" | "u" => Ok(Base::Decimal),
        "16" | "hexadecimal" | "hex" | "x" | "X" | "p" => Ok(Base::Hexadecimal),
        other => Err(parse_error(input, format!("`{}` is not a base: use 2, 8, 10 or 16", shorten(other)))),
    }
}

fn byte_order(input: &mut Input<'_>) -> Parsed<ByteOrder> {
    match expect_name(input)? {
        "le" => Ok(ByteOrder::Little),
        "be" | "network" => Ok(ByteOrder::Big),
        "native" => Ok(input.state.native),
        other => {
            Err(parse_error(input, format!("`{}` is not a byte order: use le, be, network or native", shorten(other))))
        }
    }
}

fn mapped_clock(input: &mut Input<'_>) -> Parsed<u16> {
    let path = path(input)?;
    let [_, name, _] = &path[..] else {
        return Err(parse_error(input, "an integer is mapped to a clock by `clock.NAME.value`"));
    };
    input.state.clock(name).map_err(|limit| parse_error(input, limit.to_string()))
}
