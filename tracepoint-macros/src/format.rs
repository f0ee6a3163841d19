//! Parses the format string of `trace_mark!`, `"name %d other %s"`: the printf conversions that have a field type.

use crate::field::{Base, Kind, Scalar};
use proc_macro2::Span;
use syn::{Error, Ident, LitStr, Result};

/// One conversion: the name and the kind of its field.
pub(crate) struct Conversion {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Splits a format into its conversions. The name of a field is the last word between the previous conversion and its own; if there is no
/// word, it is `argN`, counted from one.
pub(crate) fn parse(format: &LitStr) -> Result<Vec<Conversion>> {
    let text = format.value();
    let fail = |message: String| Err(Error::new(format.span(), message));
    if text.contains('\0') {
        return fail("a format string cannot hold a NUL".to_owned());
    }
    let mut conversions: Vec<Conversion> = Vec::new();
    let mut literal = String::new();
    let mut rest = text.as_str();
    while let Some(percent) = rest.find('%') {
        literal.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            literal.push('%');
            rest = after;
            continue;
        }
        let end = rest
            .find(|c: char| !is_inner(c))
            .map_or(rest.len(), |i| i + rest[i..].chars().next().map_or(0, char::len_utf8));
        let specification = &rest[..end];
        rest = &rest[end..];
        let name = last_word(&literal).unwrap_or_else(|| format!("arg{}", conversions.len() + 1));
        if conversions.iter().any(|other| other.name == name) {
            return fail(format!("the format names the field `{name}` twice"));
        }
        let kind = match conversion(specification, format.span()) {
            Ok(kind) => kind,
            Err(message) => return fail(message),
        };
        conversions.push(Conversion { name, kind });
        literal.clear();
    }
    Ok(conversions)
}

/// Returns whether `c` may occur between the `%` and the letter that ends a conversion: flags, width, precision, length.
fn is_inner(c: char) -> bool {
    matches!(c, '-' | '+' | ' ' | '#' | '\'' | '0'..='9' | '.' | '*' | 'h' | 'l' | 'L' | 'q' | 'j' | 'z' | 't')
}

/// The last identifier in `text`, the name of the field that follows it.
fn last_word(text: &str) -> Option<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .rfind(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .map(str::to_owned)
}

fn conversion(specification: &str, span: Span) -> std::result::Result<Kind, String> {
    let Some(letter) = specification.chars().last().filter(|c| !is_inner(*c)) else {
        return Err(format!("the conversion `%{specification}` is incomplete; write a per cent sign as `%%`"));
    };
    let inner = &specification[..specification.len() - letter.len_utf8()];
    if inner.contains('*') {
        return Err("`*` is not supported: write the width as a number".to_owned());
    }
    let length = inner.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let unknown = || {
        Err(format!(
            "`%{specification}` has no field type; the conversions are %d %i %u %x %X %o (with hh, h, l, ll, z, j, t), %f %e %g, %s, %c and %p"
        ))
    };
    let kind = match (letter, length) {
        ('d' | 'i', _) => integer(length, true, Base::Decimal, span),
        ('u', _) => integer(length, false, Base::Decimal, span),
        ('x' | 'X', _) => integer(length, false, Base::Hexadecimal, span),
        ('o', _) => integer(length, false, Base::Octal, span),
        ('f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A', "" | "l") => Some(Kind::Scalar {
            ident: Ident::new("f64", span),
            scalar: Scalar::Float { bits: 64 },
            base: Base::Decimal,
            big_endian: false,
        }),
        ('s', "") => Some(Kind::Printed),
        ('c', "") => Some(Kind::Character),
        ('p', "") => Some(Kind::Pointer),
        _ => None,
    };
    kind.map_or_else(unknown, Ok)
}

/// The integer type of C's length modifier on a 64-bit Unix.
fn integer(length: &str, signed: bool, base: Base, span: Span) -> Option<Kind> {
    let (bits, unsigned_name, signed_name) = match length {
        "hh" => (8, "u8", "i8"),
        "h" => (16, "u16", "i16"),
        "" => (32, "u32", "i32"),
        "l" | "ll" | "q" | "j" => (64, "u64", "i64"),
        "z" | "t" => (64, "usize", "isize"),
        _ => return None,
    };
    let ident = Ident::new(if signed { signed_name } else { unsigned_name }, span);
    Some(Kind::Scalar { ident, scalar: Scalar::Integer { bits, signed }, base, big_endian: false })
}
