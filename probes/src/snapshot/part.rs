//! The integers of a distribution, or its fractional numbers.

use crate::buckets::{FRACTION, INTEGER, fraction_bound, integer_bound};
use crate::memory::load;
use crate::row::{BUCKETS, MAX, MIN_COMPLEMENT, SUM, SUM_HIGH};
use std::sync::atomic::AtomicU64;

/// A type of number that buckets count.
pub(super) trait BucketNumber: Copy + Default + PartialEq + PartialOrd {
    type Sum: Copy + Default + PartialEq;
    const BUCKETS: usize;

    /// The smallest and the largest value of a bucket.
    fn bounds(bucket: usize) -> (Self, Self);
    fn middle(low: Self, high: Self) -> Self;
    fn of_bits(bits: u64) -> Self;
    fn sum_of_words(low: u64, high: u64) -> Self::Sum;
    fn add(sum: Self::Sum, other: Self::Sum) -> Self::Sum;
    fn subtract(sum: Self::Sum, other: Self::Sum) -> Self::Sum;
    /// The mean of `count` values, rounded down and up; `None` if the sum is not exact.
    fn means(sum: Self::Sum, count: u64) -> Option<(Self, Self)>;
    /// Limits the sum to the range that is possible for values in buckets with these bounds.
    fn limited(sum: Self::Sum, counts: impl Iterator<Item = (Self, Self, u64)>) -> Self::Sum;
}

impl BucketNumber for u64 {
    type Sum = u128;
    const BUCKETS: usize = INTEGER;

    fn bounds(bucket: usize) -> (Self, Self) {
        let end = integer_bound(bucket + 1);
        (integer_bound(bucket), if bucket + 1 == INTEGER { end } else { end - 1 })
    }

    fn middle(low: Self, high: Self) -> Self {
        low + (high - low) / 2
    }

    fn of_bits(bits: u64) -> Self {
        bits
    }

    fn sum_of_words(low: u64, high: u64) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }

    fn add(sum: u128, other: u128) -> u128 {
        sum.saturating_add(other)
    }

    fn subtract(sum: u128, other: u128) -> u128 {
        sum.saturating_sub(other)
    }

    fn means(sum: u128, count: u64) -> Option<(Self, Self)> {
        let count = u128::from(count);
        Some((sum.checked_div(count)?.try_into().ok()?, sum.div_ceil(count).try_into().ok()?))
    }

    fn limited(sum: u128, counts: impl Iterator<Item = (Self, Self, u64)>) -> u128 {
        let add = |sum: u128, value: u64, count: u64| sum.saturating_add(u128::from(value) * u128::from(count));
        let (low, high) =
            counts.fold((0, 0), |(low, high), (from, to, count)| (add(low, from, count), add(high, to, count)));
        sum.clamp(low, high)
    }
}

impl BucketNumber for f64 {
    type Sum = f64;
    const BUCKETS: usize = FRACTION;

    fn bounds(bucket: usize) -> (Self, Self) {
        let end = fraction_bound(bucket + 1);
        (fraction_bound(bucket), if end.is_finite() { end.next_down() } else { end })
    }

    fn middle(low: Self, high: Self) -> Self {
        if high.is_finite() { low.midpoint(high) } else { low }
    }

    fn of_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }

    fn sum_of_words(low: u64, _high: u64) -> f64 {
        f64::from_bits(low)
    }

    fn add(sum: f64, other: f64) -> f64 {
        sum + other
    }

    fn subtract(sum: f64, other: f64) -> f64 {
        sum - other
    }

    /// The difference of two sums is rounded.
    fn means(_sum: f64, _count: u64) -> Option<(Self, Self)> {
        None
    }

    /// Minimum and maximum limit the mean, with room for rounding errors.
    fn limited(sum: f64, _counts: impl Iterator<Item = (Self, Self, u64)>) -> f64 {
        sum
    }
}

/// The number of values in each bucket, and their minimum, maximum and sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part<T: BucketNumber> {
    /// Buckets that have values, in ascending order.
    counts: Vec<(usize, u64)>,
    /// 0 if there are no values.
    min: T,
    max: T,
    pub(super) sum: T::Sum,
}

impl<T: BucketNumber> Part<T> {
    /// Reads the words of the part in all cells. Also returns whether they were consistent. They are not if a value was added meanwhile, if a thread
    /// was killed while adding one, or if the memory is damaged; the part is then made consistent.
    pub(super) fn read(cells: &[&[AtomicU64]]) -> (Self, bool) {
        let count = |bucket| cells.iter().fold(0_u64, |sum, cell| sum.wrapping_add(load(cell, BUCKETS + bucket)));
        let counts = (0..T::BUCKETS).map(|bucket| (bucket, count(bucket)));
        let counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let (Some((first, _)), Some((last, _))) = (counts.first(), counts.last()) else {
            return (Self::default(), true);
        };
        let (first, last) = (T::bounds(*first), T::bounds(*last));
        let largest = |at| cells.iter().map(|cell| load(cell, at)).max().unwrap_or(0);
        let (min, max) = (T::of_bits(!largest(MIN_COMPLEMENT)), T::of_bits(largest(MAX)));
        let sums = cells.iter().map(|cell| T::sum_of_words(load(cell, SUM), load(cell, SUM_HIGH)));
        let sum = sums.fold(T::Sum::default(), T::add);
        let mut part = Self { min: limit(min, first), max: limit(max, last), sum, counts };
        part.sum = T::limited(sum, part.buckets());
        let is_consistent = part.min == min && part.max == max && part.sum == sum;
        (part.ordered(), is_consistent)
    }

    /// Corrects the order of the extremes: both may have been limited to one bucket.
    fn ordered(mut self) -> Self {
        if self.max < self.min {
            self.max = self.min;
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    pub(super) fn min(&self) -> Option<T> {
        (!self.is_empty()).then_some(self.min)
    }

    pub(super) fn max(&self) -> Option<T> {
        (!self.is_empty()).then_some(self.max)
    }

    /// The bounds of each bucket with values, and its number of values.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (T, T, u64)> {
        self.counts.iter().map(|(bucket, count)| {
            let (low, high) = T::bounds(*bucket);
            (low, high, *count)
        })
    }

    /// A representative value for each bucket, the middle of its possible values, and the number of values.
    pub(super) fn values(&self) -> impl Iterator<Item = (T, u64)> {
        self.buckets().map(|(low, high, count)| {
            let low = if low < self.min { self.min } else { low };
            let high = if high > self.max { self.max } else { high };
            (T::middle(low, high), count)
        })
    }

    /// The values added after `earlier`. Their minimum and maximum are exact if the overall extremes are among them, or if all of them are equal and
    /// the overall extremes are in other buckets. Otherwise they are the middles of buckets, limited by the mean, which is exact; if there is one
    /// bucket, they are the mean.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let before = |bucket| earlier.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket);
        let counts = self.counts.iter().map(|(bucket, count)| {
            (*bucket, count.saturating_sub(before(*bucket).map_or(0, |at| earlier.counts[at].1)))
        });
        let counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
        let (Some((first, _)), Some((last, _))) = (counts.first(), counts.last()) else { return Self::default() };
        let (first, last) = (T::bounds(*first), T::bounds(*last));
        let mut added = Self { min: self.min, max: self.max, sum: T::subtract(self.sum, earlier.sum), counts };
        added.sum = T::limited(added.sum, added.buckets());
        let means = T::means(added.sum, added.count());
        if let (Some((below, above)), 1) = (means, added.counts.len()) {
            let is_alone = below == above && added.count() == 1;
            let is_min = within(self.min, first) && !is_alone;
            let is_max = within(self.max, last) && !is_alone;
            return Self {
                min: if is_min { self.min } else { below },
                max: if is_max { self.max } else { above },
                ..added
            };
        }
        let mut middles = added.values().map(|(value, _)| value);
        let (first_middle, last_middle) = (middles.next(), middles.last());
        let (below, above) = means.unzip();
        if !within(self.min, first) {
            added.min = least(first_middle.unwrap_or(first.0), below);
        }
        if !within(self.max, last) {
            added.max = most(last_middle.or(first_middle).unwrap_or(last.1), above);
        }
        added.ordered()
    }

    pub(super) fn merge(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if other.is_empty() {
            return;
        }
        self.min = if other.min < self.min { other.min } else { self.min };
        self.max = if other.max > self.max { other.max } else { self.max };
        self.sum = T::add(self.sum, other.sum);
        self.counts.extend(other.counts);
        self.counts.sort_unstable();
        self.counts.dedup_by(|next, own| {
            let is_same = next.0 == own.0;
            if is_same {
                own.1 = own.1.saturating_add(next.1);
            }
            is_same
        });
    }
}

fn least<T: BucketNumber>(value: T, other: Option<T>) -> T {
    other.filter(|other| *other < value).unwrap_or(value)
}

fn most<T: BucketNumber>(value: T, other: Option<T>) -> T {
    other.filter(|other| *other > value).unwrap_or(value)
}

fn within<T: BucketNumber>(value: T, (low, high): (T, T)) -> bool {
    low <= value && value <= high
}

/// Limits the value to the bounds. NaN becomes the lower bound.
fn limit<T: BucketNumber>(value: T, (low, high): (T, T)) -> T {
    if value > high {
        high
    } else if value >= low {
        value
    } else {
        low
    }
}
