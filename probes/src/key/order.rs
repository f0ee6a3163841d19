//! The total order of keys. Keys may come from events and processes in which a field has different types.

use super::GroupKey;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use tracepoint_core::field::compare_exactly;

/// A key in comparable form.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Comparable<'a> {
    Number(Number),
    Bool(bool),
    Bytes { bytes: &'a [u8], is_path: bool, is_cut: bool },
}

enum Number {
    Integer(i128),
    Float(f64),
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Integer(integer), Self::Float(float)) => match compare_exactly(*integer, *float) {
                Some(order) => order.then(Ordering::Less),
                None if float.is_sign_negative() => Ordering::Greater,
                None => Ordering::Less,
            },
            (Self::Float(_), Self::Integer(_)) => other.cmp(self).reverse(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Integer(number) => number.hash(state),
            Self::Float(number) => number.to_bits().hash(state),
        }
    }
}

impl GroupKey {
    fn comparable(&self) -> Comparable<'_> {
        match self {
            Self::Unsigned(number) => Comparable::Number(Number::Integer((*number).into())),
            Self::Signed(number) => Comparable::Number(Number::Integer((*number).into())),
            Self::Float(number) => Comparable::Number(Number::Float(*number)),
            Self::Bool(value) => Comparable::Bool(*value),
            Self::Text { text, whole } => Comparable::Bytes { bytes: text.as_bytes(), is_path: false, is_cut: !whole },
            Self::Path { bytes, whole } => Comparable::Bytes { bytes, is_path: true, is_cut: !whole },
        }
    }
}

impl Ord for GroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.comparable().cmp(&other.comparable())
    }
}

impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.comparable() == other.comparable()
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.comparable().hash(state);
    }
}
