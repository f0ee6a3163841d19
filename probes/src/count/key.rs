//! The value of a field as the key of a group.

use std::cmp::Ordering;
use std::fmt;
use tracepoint_core::field::Value;

/// A value that can have a group.
#[derive(Clone, Copy)]
pub(super) enum Key<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Path(&'a [u8]),
}

impl<'a> Key<'a> {
    /// `None` for arrays and sequences.
    pub(super) fn of(value: &Value<'a>) -> Option<Self> {
        match *value {
            Value::Unsigned(number) => Some(Self::Unsigned(number)),
            Value::Signed(number) => Some(Self::Signed(number)),
            Value::Float(number) => Some(Self::Float(number)),
            Value::Bool(value) => Some(Self::Bool(value)),
            Value::Text(text) => Some(Self::Text(text)),
            Value::Path(bytes) => Some(Self::Path(bytes)),
            _ => None,
        }
    }
}

/// The bytes of a text that are kept.
const TEXT_ROOM: usize = 64;

/// The first bytes of a text, stored inline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    bytes: [u8; TEXT_ROOM],
    kept: u8,
    whole: bool,
}

impl Prefix {
    fn of(text: &[u8]) -> Self {
        let kept = text.len().min(TEXT_ROOM);
        let mut bytes = [0; TEXT_ROOM];
        bytes[..kept].copy_from_slice(&text[..kept]);
        Self { bytes, kept: kept as u8, whole: kept == text.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.kept)]
    }
}

/// A key, stored beside the counters of its group.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeptKey {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(Prefix),
    Path(Prefix),
}

impl KeptKey {
    pub(super) fn of(key: &Key<'_>) -> Self {
        match *key {
            Key::Unsigned(number) => Self::Unsigned(number),
            Key::Signed(number) => Self::Signed(number),
            Key::Float(number) => Self::Float(number),
            Key::Bool(value) => Self::Bool(value),
            Key::Text(text) => Self::Text(Prefix::of(text.as_bytes())),
            Key::Path(bytes) => Self::Path(Prefix::of(bytes)),
        }
    }

    pub(super) fn group_key(&self) -> GroupKey {
        match self {
            Self::Unsigned(number) => GroupKey::Unsigned(*number),
            Self::Signed(number) => GroupKey::Signed(*number),
            Self::Float(number) => GroupKey::Float(*number),
            Self::Bool(value) => GroupKey::Bool(*value),
            Self::Text(text) => {
                // The kept bytes may end inside a character.
                let whole = text.bytes().utf8_chunks().next().map_or("", |chunk| chunk.valid());
                GroupKey::Text { text: whole.to_owned(), whole: text.whole }
            }
            Self::Path(path) => GroupKey::Path { bytes: path.bytes().to_vec(), whole: path.whole },
        }
    }
}

/// The value of the field in all events of a group.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GroupKey {
    /// An unsigned integer, or an enumeration over one.
    Unsigned(u64),
    /// A signed integer, or an enumeration over one.
    Signed(i64),
    /// A floating-point number, compared by its bits.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text.
    Text {
        /// The text, or its first bytes: at most 64.
        text: String,
        /// Whether this is the complete value.
        whole: bool,
    },
    /// The bytes of a path.
    Path {
        /// The bytes: at most the first 64.
        bytes: Vec<u8>,
        /// Whether this is the complete value.
        whole: bool,
    },
}

impl GroupKey {
    /// The order for display. Keys of one field have the same type.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Unsigned(a), Self::Unsigned(b)) => a.cmp(b),
            (Self::Signed(a), Self::Signed(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Text { text: a, .. }, Self::Text { text: b, .. }) => a.cmp(b),
            (Self::Path { bytes: a, .. }, Self::Path { bytes: b, .. }) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

impl fmt::Display for GroupKey {
    /// Writes the value, with `…` behind a text that is not complete.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::Text { text, whole } => write!(f, "{text}{}", if *whole { "" } else { "…" }),
            Self::Path { bytes, whole } => {
                write!(f, "{}{}", bytes.escape_ascii(), if *whole { "" } else { "…" })
            }
        }
    }
}
