//! Values in the compact style.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::decimal;
use super::literal::{self, hexadecimal};
use crate::metadata::types::{Base, EnumType};
use crate::value::{Int, StructValue, Value};

/// Characters escaped in texts, in addition to control characters.
const QUOTED: &[u8] = b"\\\"";

pub(super) fn write(line: &mut Vec<u8>, value: &Value) -> io::Result<()> {
    match value {
        Value::Int(int) => integer(line, int),
        Value::Enum(int, ty) => enumeration(line, int, ty),
        // The shortest digits that identify the number.
        Value::F32(number) => write!(line, "{number:?}"),
        Value::F64(number) => write!(line, "{number:?}"),
        Value::String(text) => {
            literal::string(line, text, QUOTED);
            Ok(())
        }
        Value::Bytes(bytes, _) => {
            line.extend_from_slice(b"0x");
            bytes.iter().for_each(|byte| hexadecimal(line, *byte));
            Ok(())
        }
        Value::Array(values) => elements(line, values),
        Value::Struct(structure) => members(line, structure),
        Value::Variant(option, inner) => {
            match value.present() {
                None => {
                    line.extend_from_slice(b"none");
                    return Ok(());
                }
                Some(present) if !std::ptr::eq(present, value) => return write(line, present),
                Some(_) => {}
            }
            line.push(b'{');
            super::plain(line, option);
            line.push(b'=');
            write(line, inner)?;
            line.push(b'}');
            Ok(())
        }
    }
}

/// Appends an IP address; returns whether the value has the size of one.
pub(super) fn address(line: &mut Vec<u8>, value: &Value) -> bool {
    // Writing to memory cannot fail.
    match value {
        Value::Int(int) => write!(line, "{}", Ipv4Addr::from_bits(int.pattern() as u32)).is_ok(),
        Value::Bytes(bytes, _) => match (<[u8; 4]>::try_from(&**bytes), <[u8; 16]>::try_from(&**bytes)) {
            (Ok(v4), _) => write!(line, "{}", Ipv4Addr::from(v4)).is_ok(),
            (_, Ok(v6)) => write!(line, "{}", Ipv6Addr::from(v6)).is_ok(),
            _ => false,
        },
        _ => false,
    }
}

/// Appends a number of nanoseconds, exactly, in the largest unit that gives at least one; returns whether the value is a number.
pub(super) fn duration(line: &mut Vec<u8>, value: &Value) -> bool {
    let Some(Value::Int(int)) = value.present() else { return false };
    let Ok(nanoseconds) = u64::try_from(int.value) else { return false };
    let units = [(1_000_000_000, "s", 9), (1_000_000, "ms", 6), (1000, "us", 3), (1, "ns", 0)];
    let (unit, name, digits) = units.into_iter().find(|(unit, ..)| nanoseconds >= *unit).unwrap_or(units[3]);
    decimal::write(line, nanoseconds / unit);
    let rest = nanoseconds % unit;
    if rest > 0 {
        line.extend_from_slice(format!(".{rest:0digits$}").trim_end_matches('0').as_bytes());
    }
    line.extend_from_slice(name.as_bytes());
    true
}

fn integer(line: &mut Vec<u8>, int: &Int) -> io::Result<()> {
    if int.truth {
        line.extend_from_slice(if int.value == 0 { b"false" } else { b"true" });
        return Ok(());
    }
    match int.base {
        Base::Decimal => {
            if int.value < 0 {
                line.push(b'-');
            }
            // Values have 64 bits, and a sign.
            decimal::write(line, u64::try_from(int.value.unsigned_abs()).unwrap_or(u64::MAX));
            Ok(())
        }
        Base::Hexadecimal => write!(line, "{:#x}", literal::digits(int, 4)),
        Base::Octal => write!(line, "{:#o}", literal::digits(int, 3)),
        Base::Binary => write!(line, "{:#b}", literal::digits(int, 1)),
    }
}

/// The labels; the number if it has none.
fn enumeration(line: &mut Vec<u8>, int: &Int, ty: &EnumType) -> io::Result<()> {
    let mut any = false;
    for label in ty.labels(int.value) {
        if any {
            line.push(b'|');
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        if label.bytes().all(is_word) && !label.is_empty() {
            line.extend_from_slice(label.as_bytes());
        } else {
            literal::string(line, label.as_bytes(), QUOTED);
        }
        any = true;
    }
    if any { Ok(()) } else { integer(line, int) }
}

fn elements(line: &mut Vec<u8>, values: &[Value]) -> io::Result<()> {
    line.push(b'[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            line.extend_from_slice(b", ");
        }
        write(line, value)?;
    }
    line.push(b']');
    Ok(())
}

fn members(line: &mut Vec<u8>, structure: &StructValue) -> io::Result<()> {
    let mut separator: &[u8] = b"{";
    for (index, (name, value)) in structure.iter().enumerate() {
        if structure.ty.is_length(index) {
            continue;
        }
        line.extend_from_slice(separator);
        super::plain(line, name);
        line.push(b'=');
        write(line, value)?;
        separator = b" ";
    }
    line.extend_from_slice(if separator == b"{" { b"{}" } else { b"}" });
    Ok(())
}
