//! The values counted in a row. Integers and fractional numbers are separate, so that an integer in a floating-point field remains an integer.

use crate::buckets::of_fraction;
use crate::memory::Cell;
use crate::row::{BUCKETS, FRACTIONS, INTEGERS, MAX, MIN_COMPLEMENT, SUM, add_integer, increment, raise};
use std::sync::atomic::Ordering;
use tracepoint_core::field::Value;

/// The kinds of numbers that a row has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    #[default]
    Integer,
    /// Integers and fractional numbers.
    Any,
}

impl Scale {
    /// Words per row.
    pub(crate) fn words(self) -> usize {
        match self {
            Self::Integer => INTEGERS,
            Self::Any => INTEGERS + FRACTIONS,
        }
    }
}

/// A number that can be counted, not negative.
#[derive(Clone, Copy)]
pub(crate) enum Measurement {
    Integer(u64),
    /// A number that is not a 64-bit integer.
    Fraction(f64),
}

impl Measurement {
    /// `None` if the value is negative or not a number.
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
        // Drop the sign of zero.
        let number = number + 0.0;
        let is_integer = number < 2_f64.powi(64) && number.trunc().to_bits() == number.to_bits();
        if is_integer { Self::Integer(number as u64) } else { Self::Fraction(number) }
    }
}

impl Cell<'_> {
    /// Adds a value to the row at `row`.
    #[inline(always)]
    pub(crate) fn add(self, row: usize, value: Measurement) {
        match value {
            Measurement::Integer(value) => self.add_integer(row, value),
            Measurement::Fraction(value) => self.add_fraction(row + INTEGERS, value),
        }
    }

    #[inline(always)]
    pub(crate) fn add_integer(self, row: usize, value: u64) {
        add_integer(self.from(row), value, self.is_own());
    }

    #[inline(never)]
    fn add_fraction(self, row: usize, value: f64) {
        let Some(words) = self.from(row).first_chunk::<FRACTIONS>() else { return };
        // The bits of numbers that are not negative have the same order as the numbers.
        raise(&words[MAX], value.to_bits(), self.is_own());
        raise(&words[MIN_COMPLEMENT], !value.to_bits(), self.is_own());
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        // Always succeeds. A signal handler may have added to the cell between load and store, even if no other thread changes it.
        let _ = words[SUM].fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        increment(&words[BUCKETS + of_fraction(value)], self.is_own());
    }
}
