//! The values that a row counts: integers, and fractional numbers, which stand apart, so that an integer in a field of any numbers remains one.

use crate::buckets::of_fraction;
use crate::memory::Cell;
use crate::row::{BUCKETS, FRACTIONS, INTEGERS, MAX, MIN_COMPLEMENT, SUM, add_integer, increment, raise};
use std::sync::atomic::Ordering;
use tracepoint_core::field::Value;

/// Which numbers a row has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    #[default]
    Integer,
    /// Fractional numbers as well.
    Any,
}

impl Scale {
    /// The words of a row.
    pub(crate) fn words(self) -> usize {
        match self {
            Self::Integer => INTEGERS,
            Self::Any => INTEGERS + FRACTIONS,
        }
    }
}

/// A number that can be counted: it is not negative.
#[derive(Clone, Copy)]
pub(crate) enum Measured {
    Integer(u64),
    /// No integer of 64 bits.
    Fraction(f64),
}

impl Measured {
    /// `None` if the value is negative or no number.
    #[inline]
    pub(crate) fn of(scale: Scale, value: &Value<'_>) -> Option<Self> {
        match (scale, value) {
            (_, Value::Unsigned(number)) => Some(Self::Integer(*number)),
            (_, Value::Signed(number)) => u64::try_from(*number).ok().map(Self::Integer),
            (Scale::Any, Value::Float(number)) if *number >= 0.0 => Some(Self::of_float(*number)),
            _ => None,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer below 2^64")]
    fn of_float(number: f64) -> Self {
        // Without the sign of a zero.
        let number = number + 0.0;
        let is_integer = number < 2_f64.powi(64) && number.trunc().to_bits() == number.to_bits();
        if is_integer { Self::Integer(number as u64) } else { Self::Fraction(number) }
    }
}

impl Cell<'_> {
    /// Adds a value to the row at `row`.
    #[inline(always)]
    pub(crate) fn add(self, row: usize, value: Measured) {
        match value {
            Measured::Integer(value) => self.add_integer(row, value),
            Measured::Fraction(value) => self.add_fraction(row + INTEGERS, value),
        }
    }

    #[inline(always)]
    pub(crate) fn add_integer(self, row: usize, value: u64) {
        add_integer(self.from(row), value, self.is_own());
    }

    #[inline(never)]
    fn add_fraction(self, row: usize, value: f64) {
        let Some(words) = self.from(row).first_chunk::<FRACTIONS>() else { return };
        // The bits of numbers that are not negative are ordered as they are.
        raise(&words[MAX], value.to_bits(), self.is_own());
        raise(&words[MIN_COMPLEMENT], !value.to_bits(), self.is_own());
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        // It never fails. A signal handler may have added between the load and the store of a cell that no other thread changes.
        let _ = words[SUM].fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        increment(&words[BUCKETS + of_fraction(value)], self.is_own());
    }
}
