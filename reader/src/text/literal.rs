//! Values in the style of babeltrace2.

use std::io::{self, Write};

use super::{decimal, float, is_control};
use crate::metadata::types::{Base, EnumType};
use crate::value::{Int, StructValue, Value};

/// Characters that C escapes in texts, in addition to control characters.
const QUOTED: &[u8] = b"\\'\"?";

/// Appends the members of a structure in braces, except those whose names are in `hide`.
pub(super) fn members(line: &mut Vec<u8>, structure: &StructValue, hide: &[&str]) -> io::Result<()> {
    line.extend_from_slice(b"{");
    let mut separator: &[u8] = b" ";
    for (name, value) in structure.iter().filter(|(name, _)| !hide.contains(name)) {
        line.extend_from_slice(separator);
        line.extend_from_slice(name.as_bytes());
        line.extend_from_slice(b" = ");
        literal(line, value)?;
        separator = b", ";
    }
    line.extend_from_slice(b" }");
    Ok(())
}

fn literal(line: &mut Vec<u8>, value: &Value) -> io::Result<()> {
    match value {
        Value::Int(int) => integer(line, int),
        Value::Enum(int, labels) => enumeration(line, int, labels),
        Value::F32(number) => {
            float::write(line, f64::from(*number));
            Ok(())
        }
        Value::F64(number) => {
            float::write(line, *number);
            Ok(())
        }
        Value::String(bytes) => {
            string(line, bytes, QUOTED);
            Ok(())
        }
        Value::Bytes(bytes, base) => elements(line, bytes.iter(), |line, byte| {
            integer(line, &Int { value: i128::from(*byte), bits: 8, signed: false, base: *base, truth: false })
        }),
        Value::Array(values) => elements(line, values.iter(), literal),
        Value::Struct(structure) => members(line, structure, &[]),
        Value::Variant(_, value) => {
            line.extend_from_slice(b"{ ");
            literal(line, value)?;
            line.extend_from_slice(b" }");
            Ok(())
        }
    }
}

fn elements<T>(
    line: &mut Vec<u8>,
    elements: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T) -> io::Result<()>,
) -> io::Result<()> {
    line.push(b'[');
    for (index, element) in elements.enumerate() {
        let separator = if index == 0 { " " } else { ", " };
        write!(line, "{separator}[{index}] = ")?;
        write(line, element)?;
    }
    line.extend_from_slice(b" ]");
    Ok(())
}

/// An integer. In bases other than ten, a negative number is its two's complement in whole digits.
fn integer(line: &mut Vec<u8>, int: &Int) -> io::Result<()> {
    match int.base {
        Base::Decimal => {
            if int.value < 0 {
                line.push(b'-');
            }
            // Values have 64 bits, and a sign.
            decimal::write(line, u64::try_from(int.value.unsigned_abs()).unwrap_or(u64::MAX));
            Ok(())
        }
        Base::Hexadecimal => write!(line, "0x{:X}", digits(int, 4)),
        Base::Octal => write!(line, "0{:o}", digits(int, 3)),
        Base::Binary => write!(line, "0b{:0width$b}", digits(int, 1), width = usize::from(int.bits)),
    }
}

/// The bits of an integer, padded to whole digits of `per_digit` bits each.
pub(super) fn digits(int: &Int, per_digit: u32) -> u64 {
    let width = (u32::from(int.bits).div_ceil(per_digit) * per_digit).min(64);
    int.pattern() & (u64::MAX >> (64 - width))
}

fn enumeration(line: &mut Vec<u8>, int: &Int, ty: &EnumType) -> io::Result<()> {
    line.extend_from_slice(b"( ");
    let mut any = false;
    for label in ty.labels(int.value) {
        if any {
            line.extend_from_slice(b", ");
        }
        string(line, label.as_bytes(), QUOTED);
        any = true;
    }
    if !any {
        line.extend_from_slice(b"<unknown>");
    }
    line.extend_from_slice(b" : container = ");
    integer(line, int)?;
    line.extend_from_slice(b" )");
    Ok(())
}

/// Text in quotes, with C's escapes for control characters and the `quoted` ones. Beyond ASCII, terminal control characters are escaped,
/// which babeltrace2 does not do; the rest is unchanged.
pub(super) fn string(line: &mut Vec<u8>, bytes: &[u8], quoted: &[u8]) {
    line.push(b'"');
    if bytes.is_ascii() {
        ascii(line, bytes, quoted);
    } else {
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                let mut utf8 = [0; 4];
                match c.encode_utf8(&mut utf8).as_bytes() {
                    single @ [_] => ascii(line, single, quoted),
                    _ if is_control(c) => line.extend(c.escape_unicode().map(|c| c as u8)),
                    several => line.extend_from_slice(several),
                }
            }
            for &byte in chunk.invalid() {
                // Control characters for a terminal that is not in UTF-8 mode.
                if byte < 0xA0 { escaped(line, byte) } else { line.push(byte) }
            }
        }
    }
    line.push(b'"');
}

/// ASCII characters.
fn ascii(line: &mut Vec<u8>, mut text: &[u8], quoted: &[u8]) {
    let is_special = |byte: &u8| matches!(byte, 0..0x20 | 0x7F) || quoted.contains(byte);
    while let Some(at) = text.iter().position(is_special) {
        line.extend_from_slice(&text[..at]);
        let escape = match text[at] {
            0x07 => b'a',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0B => b'v',
            0x0C => b'f',
            b'\r' => b'r',
            0x1B => b'e',
            byte @ (0..0x20 | 0x7F) => {
                escaped(line, byte);
                text = &text[at + 1..];
                continue;
            }
            byte => byte,
        };
        line.extend([b'\\', escape]);
        text = &text[at + 1..];
    }
    line.extend_from_slice(text);
}

/// `\x1f`.
fn escaped(line: &mut Vec<u8>, byte: u8) {
    line.extend_from_slice(b"\\x");
    hexadecimal(line, byte);
}

/// Two digits in base 16.
pub(super) fn hexadecimal(line: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    line.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}
