//! The format of an entry: a text that names fields and types.
//!
//! `src:u32/x len:u16 u8 f64 digest:[20]`: fields in order, separated by spaces or commas. Each is a type, with an optional name in front,
//! and `/x` behind for hexadecimal display. Types are `u8` to `u128`, `i8` to `i128`, `f32`, `f64`, `bool`, and `[N]` for N
//! raw bytes.

use crate::read::{DtReader, ReadError};
use crate::tagged::tagged;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The tag of the postamble that holds a file's format.
pub const FORMAT_TAG: [u8; 4] = *b"form";
/// Maximum size of an entry in bytes.
const MAX_SIZE: usize = 1 << 20;

/// The fields of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    fields: Vec<Field>,
}

/// One field of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; `argN`, counted from 1, if the format has none.
    pub name: String,
    kind: Kind,
    hex: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned(usize),
    Signed(usize),
    Float32,
    Float64,
    Bool,
    Bytes(usize),
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldValue {
    /// A value of type `u8` to `u128`. The flag is true if it is displayed in hexadecimal.
    Unsigned(u128, bool),
    /// A value of type `i8` to `i128`.
    Signed(i128),
    /// A value of type `f32`.
    Float32(f32),
    /// A value of type `f64`.
    Float64(f64),
    /// A value of type `bool`: any byte other than 0 is true.
    Bool(bool),
    /// A value of type `[N]`.
    Bytes(Vec<u8>),
}

/// A text is not a format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column}: {reason}")]
#[non_exhaustive]
pub struct FormatError {
    /// The column, in characters, counted from 1.
    pub column: usize,
    /// The fault, and the expected input.
    pub reason: String,
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Self::Unsigned(size) | Self::Signed(size) | Self::Bytes(size) => size,
            Self::Float32 => 4,
            Self::Float64 => 8,
            Self::Bool => 1,
        }
    }

    fn value(self, bytes: &[u8], hex: bool) -> FieldValue {
        let number = || bytes.iter().rev().fold(0, |all: u128, byte| all << 8 | u128::from(*byte));
        match self {
            Self::Unsigned(_) => FieldValue::Unsigned(number(), hex),
            // Hexadecimal display shows the bits.
            Self::Signed(_) if hex => FieldValue::Unsigned(number(), true),
            Self::Signed(size) => {
                let unused = 128 - 8 * size as u32;
                FieldValue::Signed(number().cast_signed() << unused >> unused)
            }
            Self::Float32 => FieldValue::Float32(f32::from_bits(number() as u32)),
            Self::Float64 => FieldValue::Float64(f64::from_bits(number() as u64)),
            Self::Bool => FieldValue::Bool(number() != 0),
            Self::Bytes(_) => FieldValue::Bytes(bytes.to_vec()),
        }
    }
}

impl Format {
    /// Size of an entry in bytes.
    pub fn size(&self) -> usize {
        self.fields.iter().map(|field| field.kind.size()).sum()
    }

    /// The fields of an entry whose bytes are `entry`.
    ///
    /// # Panics
    ///
    /// If `entry` does not have [`size`](Self::size) bytes.
    pub fn values<'a>(&'a self, mut entry: &'a [u8]) -> impl Iterator<Item = (&'a Field, FieldValue)> + 'a {
        assert_eq!(entry.len(), self.size(), "an entry of this format");
        self.fields.iter().map(move |field| {
            let (bytes, rest) = entry.split_at(field.kind.size());
            entry = rest;
            (field, field.kind.value(bytes, field.hex))
        })
    }

    /// A tagged postamble with this format. It must be inserted before all postambles without a tag.
    pub fn to_postamble(&self) -> Vec<u8> {
        tagged(FORMAT_TAG, self.to_string().as_bytes())
    }
}

impl DtReader {
    /// The format in the postambles of the file, if there is one. If there are several, the last one is used.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]; [`ReadError::Postamble`] if it is malformed.
    pub fn format(&self) -> Result<Option<Format>, ReadError> {
        let Some(tagged) = self.tagged_postamble(FORMAT_TAG)? else { return Ok(None) };
        let wrong = |reason| ReadError::Postamble { path: self.path().to_owned(), offset: tagged.offset, reason };
        let text = std::str::from_utf8(&tagged.contents).map_err(|error| wrong(format!("the format: {error}")))?;
        text.parse().map(Some).map_err(|error| wrong(format!("the format: {error}")))
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let mut fields = Vec::new();
        let separates = |c: char| c == ',' || c.is_whitespace();
        let (mut column, mut size) = (1, 0usize);
        for part in text.split(separates) {
            if !part.is_empty() {
                let field = parse_field(part, fields.len() + 1).map_err(|reason| FormatError { column, reason })?;
                size = size.saturating_add(field.kind.size());
                if size > MAX_SIZE {
                    let reason = format!("an entry would have more than {MAX_SIZE} bytes");
                    return Err(FormatError { column, reason });
                }
                fields.push(field);
            }
            column += part.chars().count() + 1;
        }
        if size == 0 {
            return Err(FormatError { column, reason: "there is no field; expected a type, as in `len:u16`".into() });
        }
        Ok(Self { fields })
    }
}

fn parse_field(text: &str, number: usize) -> Result<Field, String> {
    let (name, kind) = match text.split_once(':') {
        Some(("", _)) => return Err(format!("expected a name in front of the colon in `{text}`")),
        Some((name, kind)) => (name.to_owned(), kind),
        None => (format!("arg{number}"), text),
    };
    let (kind, hex) = kind.strip_suffix("/x").map_or((kind, false), |kind| (kind, true));
    let bytes = || kind[1..].parse::<usize>().map_or(1, |bits| bits / 8);
    let kind = match kind {
        "u8" | "u16" | "u32" | "u64" | "u128" => Kind::Unsigned(bytes()),
        "i8" | "i16" | "i32" | "i64" | "i128" => Kind::Signed(bytes()),
        "f32" => Kind::Float32,
        "f64" => Kind::Float64,
        "bool" => Kind::Bool,
        other => match other.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse().ok()) {
            Some(size @ 1..=MAX_SIZE) => Kind::Bytes(size),
            _ => {
                return Err(format!("`{other}` is not a type; expected u8 to u128, i8 to i128, f32, f64, bool or [N]"));
            }
        },
    };
    Ok(Field { name, kind, hex })
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, field) in self.fields.iter().enumerate() {
            let space = if number == 0 { "" } else { " " };
            write!(f, "{space}{}:{}{}", field.name, field.kind, if field.hex { "/x" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(size) => write!(f, "u{}", 8 * size),
            Self::Signed(size) => write!(f, "i{}", 8 * size),
            Self::Float32 => f.write_str("f32"),
            Self::Float64 => f.write_str("f64"),
            Self::Bool => f.write_str("bool"),
            Self::Bytes(size) => write!(f, "[{size}]"),
        }
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(value, true) => write!(f, "{value:#x}"),
            Self::Unsigned(value, false) => write!(f, "{value}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Float32(value) => write!(f, "{value}"),
            Self::Float64(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}
