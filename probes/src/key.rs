//! Field values as keys: the 64-bit identity of a value, and its representation in the memory of a statistic.

mod order;

use crate::memory::load;
use serde::{Serialize, Serializer};
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_core::field::Value;

/// Words of a stored key: a descriptive word, then the number or the first bytes of the text.
pub(crate) const KEY_WORDS: usize = 9;
/// Maximum number of stored bytes of a text.
const TEXT_BYTES: usize = (KEY_WORDS - 1) * 8;

/// Distinguish numbers of other types, and negative ones, from unsigned integers with the same bits. The sign of a negative number is kept.
const NEGATIVE: u64 = 0x5851_F42D_4C95_7F2D;
const FLOAT: u64 = 0xA076_1D64_78BD_642F;
const BOOL: u64 = 0xE703_7ED1_A0B4_28DB;

/// A value that can be a key.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Path(&'a [u8]),
}

impl<'a> Key<'a> {
    /// `None` for arrays and sequences.
    #[inline]
    pub(crate) fn of(value: &Value<'a>) -> Option<Self> {
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

    /// For a number, a bijection, so that no two numbers of a type share an identity. For a text, a hash with a secret key. Equal integers of both
    /// types have equal identities.
    #[inline]
    pub(crate) fn identity(&self, hasher: &RandomState) -> u64 {
        match *self {
            Self::Unsigned(number) => scramble(number),
            Self::Signed(number) => scramble(number.cast_unsigned() ^ ((number >> 63).cast_unsigned() & NEGATIVE)),
            Self::Float(number) => scramble(number.to_bits() ^ FLOAT),
            Self::Bool(value) => scramble(u64::from(value) ^ BOOL),
            Self::Text(text) => hash(hasher, text),
            Self::Path(bytes) => hash(hasher, bytes),
        }
    }

    /// Stores the key. The descriptive word is stored last.
    pub(crate) fn store(&self, words: &[AtomicU64]) {
        let (kind, kept, is_whole) = match *self {
            Self::Unsigned(number) => (1, store_number(words, number), true),
            Self::Signed(number) => (2, store_number(words, number.cast_unsigned()), true),
            Self::Float(number) => (3, store_number(words, number.to_bits()), true),
            Self::Bool(value) => (4, store_number(words, u64::from(value)), true),
            Self::Text(text) => (5, store_bytes(words, text.as_bytes()), text.len() <= TEXT_BYTES),
            Self::Path(bytes) => (6, store_bytes(words, bytes), bytes.len() <= TEXT_BYTES),
        };
        // K1: Release pairs with the Acquire load in `GroupKey::load`: a thread that sees the description sees the number or the text.
        words[0].store(kind | (kept as u64) << 8 | u64::from(is_whole) << 16, Ordering::Release);
    }
}

fn store_number(words: &[AtomicU64], number: u64) -> usize {
    words[1].store(number, Ordering::Relaxed);
    8
}

fn store_bytes(words: &[AtomicU64], bytes: &[u8]) -> usize {
    let kept = &bytes[..bytes.len().min(TEXT_BYTES)];
    for (word, chunk) in words[1..].iter().zip(kept.chunks(8)) {
        let mut whole = [0; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_le_bytes(whole), Ordering::Relaxed);
    }
    kept.len()
}

#[inline(never)]
fn hash(hasher: &RandomState, text: impl Hash) -> u64 {
    hasher.hash_one(text)
}

/// The finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators"): a bijection.
#[inline]
const fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// The identity of a pair of keys.
pub(crate) fn combine(first: u64, second: u64) -> u64 {
    scramble(first.rotate_left(32) ^ scramble(second ^ 0x9E37_79B9_7F4A_7C15))
}

/// A field value that all events of a group share.
///
/// Keys have a total order, even if the field has different types in different events: numbers by exact value, then booleans, then texts and paths by
/// their bytes. Integers are equal if their values are. An integer comes before an equal floating-point number; -0.0 comes before 0.0; a NaN comes
/// before or after all numbers, depending on its sign. A text comes before a path of the same bytes, and a complete value before a truncated one.
#[derive(Clone, Debug)]
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
        /// The text, or its first 64 bytes.
        text: String,
        /// True if the value is complete.
        whole: bool,
    },
    /// The bytes of a path.
    Path {
        /// The bytes, at most the first 64.
        bytes: Vec<u8>,
        /// True if the value is complete.
        whole: bool,
    },
}

impl GroupKey {
    /// Reads a key; `None` if it is not stored yet, or malformed.
    pub(crate) fn load(words: &[AtomicU64]) -> Option<Self> {
        // K1: Acquire pairs with the Release store in `Key::store`.
        let description = words[0].load(Ordering::Acquire);
        let (kind, kept, whole) = (description & 0xFF, (description >> 8 & 0xFF) as usize, description >> 16 & 1 == 1);
        let number = load(words, 1);
        let bytes = || -> Option<Vec<u8>> {
            let all: Vec<u8> =
                words[1..KEY_WORDS].iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
            all.get(..kept).map(<[u8]>::to_vec)
        };
        Some(match kind {
            1 => Self::Unsigned(number),
            2 => Self::Signed(number.cast_signed()),
            3 => Self::Float(f64::from_bits(number)),
            4 => Self::Bool(number != 0),
            5 => {
                let bytes = bytes()?;
                // The stored bytes may end inside a character.
                let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()).to_owned();
                Self::Text { text, whole }
            }
            6 => Self::Path { bytes: bytes()?, whole },
            _ => return None,
        })
    }

    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "documented: the nearest one")]
        match *self {
            Self::Unsigned(number) => Some(number as f64),
            Self::Signed(number) => Some(number as f64),
            Self::Float(number) => Some(number),
            _ => None,
        }
    }
}

impl fmt::Display for GroupKey {
    /// Writes the value, followed by `…` if it is truncated.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::Text { text, whole } => write!(f, "{text}{}", if *whole { "" } else { "…" }),
            Self::Path { bytes, whole } => write!(f, "{}{}", bytes.escape_ascii(), if *whole { "" } else { "…" }),
        }
    }
}

impl Serialize for GroupKey {
    /// Writes numbers and booleans as such, and all other values as the text of `Display`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Unsigned(number) => serializer.serialize_u64(number),
            Self::Signed(number) => serializer.serialize_i64(number),
            Self::Float(number) => serializer.serialize_f64(number),
            Self::Bool(value) => serializer.serialize_bool(value),
            Self::Text { .. } | Self::Path { .. } => serializer.collect_str(self),
        }
    }
}
