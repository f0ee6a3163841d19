//! The distribution of values over the buckets of a histogram.

use super::part::Part;
use crate::buckets::{
    FRACTION, INTEGER, fraction_bound, integer_bound, integer_step, of_fraction, of_integer, step_of,
};
use crate::row::INTEGERS;
use crate::values::Scale;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

/// The values of a histogram by bucket.
///
/// Minimum, maximum and sum are exact, and so are integers below 1,024. Other values are known by their bucket only: a percentile is the middle
/// of a bucket, within 1/64 (1.6 %) of the exact value; for integers it is an integer. The buckets of fractional numbers below 2^-64 and
/// from 2^64 on are wider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    scale: Scale,
    integers: Part<u64>,
    fractions: Part<f64>,
}

/// A value. Integers stay exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// An integer.
    Integer(u64),
    /// A number that is not an integer, or too large for one.
    Fraction(f64),
}

impl Number {
    /// The nearest floating-point number.
    #[expect(clippy::cast_precision_loss, reason = "the nearest")]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Fraction(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Fraction(number) => number.fmt(f),
        }
    }
}

/// A bucket with values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// The first value in it.
    pub from: f64,
    /// The first value above it.
    pub to: f64,
    /// Number of values in it.
    pub count: u64,
}

impl Distribution {
    /// Reads the row at the start of each of `cells`. Also returns whether it was consistent.
    pub(super) fn read(scale: Scale, cells: &[&[AtomicU64]]) -> (Self, bool) {
        let (integers, is_whole) = Part::read(cells);
        if scale == Scale::Integer {
            return (Self { scale, integers, fractions: Part::default() }, is_whole);
        }
        let behind: Vec<_> = cells.iter().map(|cell| &cell[INTEGERS..]).collect();
        let (fractions, are_whole) = Part::read(&behind);
        (Self { scale, integers, fractions }, is_whole && are_whole)
    }

    /// Returns whether the field can have integers only. Otherwise fractional numbers may come later.
    pub fn is_of_integers(&self) -> bool {
        self.scale == Scale::Integer
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.integers.count().saturating_add(self.fractions.count())
    }

    /// The smallest value that at least `percent` of all values do not exceed (nearest rank), for example for 99.9; `None` if there are no values. 0
    /// gives the minimum, and 100 the maximum.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.number(percent).map(Number::to_f64)
    }

    /// The [percentile](Self::percentile), as an integer if it is one, even beyond 2^53.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    pub fn number(&self, percent: f64) -> Option<Number> {
        // Beyond 2^53 values the rank is not exact.
        let count = self.count();
        let rank = (percent.clamp(0.0, 100.0) / 100.0 * count as f64).ceil() as u64;
        if rank <= 1 {
            return self.smallest();
        }
        if rank >= count || percent >= 100.0 {
            return self.largest();
        }
        let integers = self.integers.values().map(|(value, count)| (Number::Integer(value), count));
        let fractions = self.fractions.values().map(|(value, count)| (Number::Fraction(value), count));
        let mut values: Vec<_> = integers.chain(fractions).collect();
        if !self.fractions.is_empty() {
            values.sort_by(|a, b| a.0.to_f64().total_cmp(&b.0.to_f64()));
        }
        let mut below = 0_u64;
        let reached = |(_, count): &&(Number, u64)| {
            below = below.saturating_add(*count);
            below >= rank
        };
        values.iter().find(reached).map(|(value, _)| *value).or_else(|| self.largest())
    }

    fn smallest(&self) -> Option<Number> {
        let (integer, fraction) =
            (self.integers.min().map(Number::Integer), self.fractions.min().map(Number::Fraction));
        let both = integer.into_iter().chain(fraction);
        both.min_by(|a, b| a.to_f64().total_cmp(&b.to_f64()))
    }

    fn largest(&self) -> Option<Number> {
        let (integer, fraction) =
            (self.integers.max().map(Number::Integer), self.fractions.max().map(Number::Fraction));
        let both = integer.into_iter().chain(fraction);
        both.max_by(|a, b| a.to_f64().total_cmp(&b.to_f64()))
    }

    /// The smallest value.
    pub fn min(&self) -> Option<f64> {
        self.percentile(0.0)
    }

    /// The largest value.
    pub fn max(&self) -> Option<f64> {
        self.percentile(100.0)
    }

    /// The sum of the values. Fractional numbers are added in the order of arrival.
    #[expect(clippy::cast_precision_loss, reason = "the nearest")]
    pub fn sum(&self) -> f64 {
        self.integers.sum as f64 + self.fractions.sum
    }

    /// The sum, if all values are integers.
    pub fn integer_sum(&self) -> Option<u128> {
        self.fractions.is_empty().then_some(self.integers.sum)
    }

    /// The mean of the values.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub fn mean(&self) -> Option<f64> {
        let (min, max) = (self.min()?, self.max()?);
        // The rounded sum of large fractional numbers may give a mean outside the range.
        Some((self.sum() / self.count() as f64).max(min).min(max))
    }

    /// The buckets that have values, in ascending order. If there are fractional numbers, all values are in buckets of fractional numbers.
    #[expect(clippy::cast_precision_loss, reason = "bounds have few significant bits")]
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let buckets: Vec<_> = if self.fractions.is_empty() {
            let integers = self.integers.buckets();
            integers.map(|(from, last, count)| Bucket { from: from as f64, to: last as f64 + 1.0, count }).collect()
        } else {
            let mut counts = BTreeMap::new();
            let integers = self.integers.buckets().map(|(from, _, count)| (from as f64, count));
            for (from, count) in integers.chain(self.fractions.buckets().map(|(from, _, count)| (from, count))) {
                let sum = counts.entry(of_fraction(from)).or_insert(0_u64);
                *sum = sum.saturating_add(count);
            }
            let bucket =
                |(bucket, count)| Bucket { from: fraction_bound(bucket), to: fraction_bound(bucket + 1), count };
            counts.into_iter().map(bucket).collect()
        };
        buckets.into_iter()
    }

    /// Number of values that are at most `limit`. If `limit` is not the last value of its bucket, the values in that bucket are not included.
    #[expect(clippy::cast_precision_loss, reason = "bounds have few significant bits")]
    pub fn at_most(&self, limit: f64) -> u64 {
        let integers = self.integers.buckets().filter(|(_, last, _)| *last as f64 <= limit).map(|(_, _, count)| count);
        let fractions = self.fractions.buckets().filter(|(_, last, _)| *last <= limit).map(|(_, _, count)| count);
        integers.chain(fractions).fold(0, u64::saturating_add)
    }

    /// All buckets from the first to the last one with values, including empty ones, merged into at most `most` bins (at least 1). If the values span
    /// fewer than `most` integers, each gets a bin of its own; otherwise buckets are merged by the same part of a power of two. Each bucket is in
    /// exactly one bin.
    #[expect(clippy::cast_precision_loss, reason = "bounds have few significant bits")]
    pub fn bins(&self, most: usize) -> Vec<Bucket> {
        let bounds = (self.integers.min(), self.integers.max(), self.fractions.is_empty());
        let (Some(first), Some(last), true) = bounds else {
            let buckets = self.buckets().map(|bucket| (of_fraction(bucket.from), bucket.count));
            return binned(&buckets.collect::<Vec<_>>(), most, FRACTION, fraction_bound);
        };
        if last - first < most.max(1) as u64 && of_integer(last) as u64 == last {
            let buckets = self.integers.buckets().map(|(from, _, count)| (of_integer(from), count));
            return binned(&buckets.collect::<Vec<_>>(), most, INTEGER, |bucket| integer_bound(bucket) as f64);
        }
        let steps = self.integers.buckets().map(|(from, _, count)| (step_of(from), count));
        binned(&steps.collect::<Vec<_>>(), most, step_of(u64::MAX) + 1, |step| integer_step(step) as f64)
    }

    /// The values added after `earlier`, which is an earlier state of the same distribution. The sum and the mean of integers are exact. Their
    /// minimum and maximum are exact if the extremes of all values are among them, if they are all equal and the overall extremes are in other
    /// buckets, or if they are below 1,024. Otherwise they are integers within 1/64 of the exact values, on the correct side of the mean.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            scale: self.scale,
            integers: self.integers.since(&earlier.integers),
            fractions: self.fractions.since(&earlier.fractions),
        }
    }

    /// Adds the values of another distribution of the same field.
    pub fn merge(&mut self, other: Self) {
        if other.scale == Scale::Any {
            self.scale = other.scale;
        }
        self.integers.merge(other.integers);
        self.fractions.merge(other.fractions);
    }
}

/// Merges `counts`, in ascending order of their buckets, into at most `most` bins. There are `buckets` buckets; `bound` gives the start of each.
fn binned(counts: &[(usize, u64)], most: usize, buckets: usize, bound: impl Fn(usize) -> f64) -> Vec<Bucket> {
    let (Some((first, _)), Some((last, _))) = (counts.first(), counts.last()) else { return Vec::new() };
    let mut shift = 0;
    while (last >> shift) - (first >> shift) >= most.max(1) {
        shift += 1;
    }
    let end = |bin: usize| bound((bin << shift).min(buckets));
    let bins = (first >> shift)..=(last >> shift);
    let mut bins: Vec<_> = bins.map(|bin| Bucket { from: end(bin), to: end(bin + 1), count: 0 }).collect();
    for (bucket, count) in counts {
        let bin = &mut bins[(bucket >> shift) - (first >> shift)];
        bin.count = bin.count.saturating_add(*count);
    }
    bins
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Distribution", 10)?;
        fields.serialize_field("count", &self.count())?;
        // Beyond 64 bits use the nearest floating-point number, which all JSON readers support.
        let sum = self.integer_sum().and_then(|sum| u64::try_from(sum).ok()).map(Number::Integer);
        fields.serialize_field("sum", &sum.unwrap_or(Number::Fraction(self.sum())))?;
        fields.serialize_field("min", &self.number(0.0))?;
        fields.serialize_field("mean", &self.mean())?;
        for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)] {
            fields.serialize_field(name, &self.number(percent))?;
        }
        fields.serialize_field("max", &self.number(100.0))?;
        fields.serialize_field("buckets", &self.buckets().collect::<Vec<_>>())?;
        fields.end()
    }
}
