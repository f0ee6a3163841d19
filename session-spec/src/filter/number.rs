//! Numbers in filters. Comparisons are exact, between integers and floating-point numbers as well.

use std::cmp::Ordering;
use tracepoint_core::field::{Value, compare_exactly};

/// A number. Integers are signed or unsigned 64-bit values or their negatives, and therefore within ±2^64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

/// Operators on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bitwise {
    And,
    Or,
    Xor,
    Left,
    Right,
}

/// Operators that compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Returns whether the comparison holds for operands in this order; `None` means that one of them is NaN.
    #[inline]
    pub(super) fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    /// The comparison with its sides exchanged.
    pub(super) const fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }
}

impl From<bool> for Number {
    fn from(truth: bool) -> Self {
        Self::Integer(truth.into())
    }
}

impl Number {
    /// Stands for an absent value: it compares as NaN does, has no bits, and is not true.
    pub(super) const ABSENT: Self = Self::Float(f64::NAN);

    /// Returns the number in a field; `None` if it holds no number.
    #[inline]
    pub(super) fn of(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Unsigned(value) => Some(Self::Integer(value.into())),
            Value::Signed(value) => Some(Self::Integer(value.into())),
            Value::Bool(value) => Some(value.into()),
            Value::Float(value) => Some(Self::Float(value)),
            Value::Absent => Some(Self::ABSENT),
            _ => None,
        }
    }

    /// Returns whether the value is neither zero nor absent.
    #[inline]
    pub(super) fn is_true(self) -> bool {
        match self {
            Self::Integer(value) => value != 0,
            Self::Float(value) => value != 0.0 && !value.is_nan(),
        }
    }

    /// Compares the two exactly; `None` if one is NaN.
    #[inline]
    pub(super) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => Some(left.cmp(&right)),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right),
            (Self::Integer(left), Self::Float(right)) => compare_exactly(left, right),
            (Self::Float(left), Self::Integer(right)) => compare_exactly(right, left).map(Ordering::reverse),
        }
    }

    #[inline]
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Integer(value) => Self::Integer(value.wrapping_neg()),
            Self::Float(value) => Self::Float(-value),
        }
    }

    /// Returns the low 64 bits, in two's complement; 0 for a float, which the type check rejects.
    #[inline]
    pub(super) fn bits(self) -> u64 {
        match self {
            #[allow(clippy::cast_sign_loss, reason = "two's complement is intended")]
            Self::Integer(value) => value as u64,
            Self::Float(_) => 0,
        }
    }

    /// Combines the low 64 bits of both. A shift by 64 or more gives 0.
    #[inline]
    pub(super) fn bitwise(self, operator: Bitwise, other: Self) -> Self {
        let (left, right) = (self.bits(), other.bits());
        let by = u32::try_from(right).unwrap_or(u32::MAX);
        let bits = match operator {
            Bitwise::And => left & right,
            Bitwise::Or => left | right,
            Bitwise::Xor => left ^ right,
            Bitwise::Left => left.checked_shl(by).unwrap_or(0),
            Bitwise::Right => left.checked_shr(by).unwrap_or(0),
        };
        Self::Integer(bits.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_do_not_round() {
        use Ordering::{Equal, Greater, Less};
        let (large, large_float) = (1 << 53, 9_007_199_254_740_992.0);
        for (integer, float, expected) in [
            (large + 1, large_float, Some(Greater)),
            (large, large_float, Some(Equal)),
            (i128::from(u64::MAX), 18_446_744_073_709_551_616.0, Some(Less)),
            (i128::from(i64::MIN), -9_223_372_036_854_775_808.0, Some(Equal)),
            (3, 3.5, Some(Less)),
            (-3, -3.5, Some(Greater)),
            (0, -0.0, Some(Equal)),
            (0, -0.5, Some(Greater)),
            (0, f64::from_bits(1), Some(Less)),
            (5, f64::INFINITY, Some(Less)),
            (5, f64::NEG_INFINITY, Some(Greater)),
            (5, f64::NAN, None),
        ] {
            let (integer, float) = (Number::Integer(integer), Number::Float(float));
            assert_eq!(integer.compare(float), expected, "{integer:?} and {float:?}");
            assert_eq!(float.compare(integer), expected.map(Ordering::reverse), "{float:?} and {integer:?}");
        }
    }

    #[test]
    fn shifts_and_signs() {
        let number = |value: i128| Number::Integer(value);
        assert_eq!(number(-1).bitwise(Bitwise::And, number(0xff)), number(0xff));
        assert_eq!(number(1).bitwise(Bitwise::Left, number(63)), number(1 << 63));
        for by in [64, 1 << 32, -1] {
            assert_eq!(number(-1).bitwise(Bitwise::Left, number(by)), number(0));
            assert_eq!(number(-1).bitwise(Bitwise::Right, number(by)), number(0));
        }
        assert_eq!(number(u64::MAX.into()).negated(), number(-i128::from(u64::MAX)));
    }
}
