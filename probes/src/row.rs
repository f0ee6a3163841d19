//! The words of a row of values: the exact maximum, minimum and sum, followed by the number of values in each bucket.
//!
//! All words are initially 0. The minimum is stored as its complement, so that both extremes only grow.

use crate::buckets::{FRACTION, INTEGER, of_integer};
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::thread::{add_local, add_local_wide, add_shared_wide, raise_local};

/// The words before the buckets: the maximum, the complement of the minimum, and the sum; the sum of integers has 128 bits.
pub(crate) const MAX: usize = 0;
pub(crate) const MIN_COMPLEMENT: usize = 1;
pub(crate) const SUM: usize = 2;
pub(crate) const SUM_HIGH: usize = 3;
pub(crate) const BUCKETS: usize = 4;
/// Words of a row of integers, and of the row of fractional numbers after it.
pub(crate) const INTEGERS: usize = BUCKETS + INTEGER;
pub(crate) const FRACTIONS: usize = BUCKETS + FRACTION;

/// Adds one to a word. With `is_own`, only the calling thread and its signal handlers change it.
#[inline(always)]
pub(crate) fn increment(word: &AtomicU64, is_own: bool) {
    if is_own {
        add_local(word, 1);
    } else {
        word.fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds a value to the row of integers at the start of `words`. The bucket is updated last, so that each counted value is between minimum and
/// maximum. With `is_own`, only the calling thread and its signal handlers change the words.
#[inline(always)]
pub(crate) fn add_integer(words: &[AtomicU64], value: u64, is_own: bool) {
    let Some(words) = words.first_chunk::<INTEGERS>() else { return };
    raise(&words[MAX], value, is_own);
    raise(&words[MIN_COMPLEMENT], !value, is_own);
    let (sum, carry) = (&words[SUM], &words[SUM_HIGH]);
    if is_own {
        add_local_wide(sum, carry, value);
    } else {
        add_shared_wide(sum, carry, value);
    }
    increment(&words[BUCKETS + of_integer(value)], is_own);
}

/// Raises a word to `value`, if it is smaller.
#[inline(always)]
pub(crate) fn raise(word: &AtomicU64, value: u64, is_own: bool) {
    if is_own {
        raise_local(word, value);
    } else if value > word.load(Ordering::Relaxed) {
        word.fetch_max(value, Ordering::Relaxed);
    }
}
