//! The values of a row: how many there are in each bucket, and beside that their exact minimum, maximum and sum.
//!
//! Integers and fractional numbers stand apart, so that an integer in a field of any numbers remains one. All words are 0 at first: of the
//! minimum its complement is kept, so that both it and the maximum only grow.

use crate::buckets::{FRACTION, INTEGER, of_fraction, of_integer};
use crate::memory::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_core::field::Value;

/// The words before the buckets: the maximum, the complement of the minimum, and the sum, of integers in 128 bits.
pub(crate) const MAX: usize = 0;
pub(crate) const MIN_COMPLEMENT: usize = 1;
pub(crate) const SUM: usize = 2;
pub(crate) const SUM_HIGH: usize = 3;
pub(crate) const BUCKETS: usize = 4;
/// The words of integers, and those of fractional numbers behind them.
pub(crate) const INTEGERS: usize = BUCKETS + INTEGER;
pub(crate) const FRACTIONS: usize = BUCKETS + FRACTION;

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
    /// Adds a value to the row at `row`: to its bucket last, so that each counted value is within the minimum and the maximum.
    #[inline(always)]
    pub(crate) fn add(self, row: usize, value: Measured) {
        match value {
            Measured::Integer(value) => self.add_integer(row, value),
            Measured::Fraction(value) => self.add_fraction(row + INTEGERS, value),
        }
    }

    #[inline(always)]
    pub(crate) fn add_integer(self, row: usize, value: u64) {
        let Some(words) = self.from(row).first_chunk::<INTEGERS>() else { return };
        raise(&words[MAX], value);
        raise(&words[MIN_COMPLEMENT], !value);
        self.add_wide(&words[SUM], &words[SUM_HIGH], value);
        self.increment_word(&words[BUCKETS + of_integer(value)]);
    }

    #[inline(never)]
    fn add_fraction(self, row: usize, value: f64) {
        let Some(words) = self.from(row).first_chunk::<FRACTIONS>() else { return };
        // The bits of numbers that are not negative are ordered as they are.
        raise(&words[MAX], value.to_bits());
        raise(&words[MIN_COMPLEMENT], !value.to_bits());
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        // It never fails. A signal handler may have added between the load and the store of a cell that no other thread changes.
        let _ = words[SUM].fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        self.increment_word(&words[BUCKETS + of_fraction(value)]);
    }
}

/// Raises a word to `value`. Few values are the largest so far, so that most cost a load.
#[inline(always)]
fn raise(word: &AtomicU64, value: u64) {
    if value > word.load(Ordering::Relaxed) {
        raise_shared(word, value);
    }
}

/// Atomic also in a cell that one thread changes, for its signal handlers.
#[cold]
#[inline(never)]
fn raise_shared(word: &AtomicU64, value: u64) {
    word.fetch_max(value, Ordering::Relaxed);
}
