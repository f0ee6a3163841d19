//! How values are distributed over the buckets of a histogram.

use crate::buckets::Scale;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// The values of a histogram, by bucket.
///
/// A value is known by its bucket alone: those that the methods return are the middles of buckets, within 1/64 (1.6 %) of the exact ones;
/// integers below 64 are exact. Floating-point numbers below 2^-64 count as 0, and those from 2^64 on as 2^64.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    scale: Scale,
    /// Buckets that have values, ascending.
    counts: Vec<(usize, u64)>,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { scale: Scale::Integer, counts: Vec::new() }
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
    /// How many values are in it.
    pub count: u64,
}

impl Distribution {
    pub(super) fn new(scale: Scale, counts: Vec<(usize, u64)>) -> Self {
        Self { scale, counts }
    }

    pub(super) fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether the values are integers.
    pub fn is_integer(&self) -> bool {
        self.scale == Scale::Integer
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The value that `percent` of all values are not above (nearest rank), for example 99.9; `None` if there are no values.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        // Beyond 2^53 values the rank is not exact.
        if percent >= 100.0 {
            return self.max();
        }
        let rank = ((percent.clamp(0.0, 100.0) / 100.0 * self.count() as f64).ceil() as u64).max(1);
        let mut below = 0_u64;
        let reached = |(_, count): &&(usize, u64)| {
            below = below.saturating_add(*count);
            below >= rank
        };
        let last = self.counts.last();
        self.counts.iter().find(reached).or(last).map(|(bucket, _)| self.scale.middle(*bucket))
    }

    /// The smallest value.
    pub fn min(&self) -> Option<f64> {
        self.counts.first().map(|(bucket, _)| self.scale.middle(*bucket))
    }

    /// The largest value.
    pub fn max(&self) -> Option<f64> {
        self.counts.last().map(|(bucket, _)| self.scale.middle(*bucket))
    }

    /// The mean of the values.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.counts.iter().map(|(bucket, count)| self.scale.middle(*bucket) * *count as f64).sum();
        (!self.counts.is_empty()).then(|| sum / self.count() as f64)
    }

    /// The buckets that have values, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.counts.iter().map(|(bucket, count)| {
            let (from, to) = self.scale.bounds(*bucket);
            Bucket { from, to, count: *count }
        })
    }

    /// All buckets from the first to the last with values, empty ones included, put together by the same power of two until there are at most
    /// `most` (at least 1). Each bucket lies in one of them.
    pub fn bins(&self, most: usize) -> Vec<Bucket> {
        let (Some((first, _)), Some((last, _))) = (self.counts.first(), self.counts.last()) else { return Vec::new() };
        let mut shift = 0;
        while (last >> shift) - (first >> shift) >= most.max(1) {
            shift += 1;
        }
        let end = |bin: usize| (bin << shift).min(self.scale.buckets());
        let mut bins: Vec<_> = (first >> shift..=last >> shift)
            .map(|bin| Bucket {
                from: self.scale.bounds(end(bin)).0,
                to: self.scale.bounds(end(bin + 1) - 1).1,
                count: 0,
            })
            .collect();
        for (bucket, count) in &self.counts {
            let bin = &mut bins[(bucket >> shift) - (first >> shift)];
            bin.count = bin.count.saturating_add(*count);
        }
        bins
    }

    /// The values that were added after `earlier`, which is an earlier state of the same distribution.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bucket| earlier.counts.binary_search_by_key(&bucket, |(bucket, _)| *bucket);
        let counts = self.counts.iter().map(|(bucket, count)| {
            (*bucket, count.saturating_sub(before(*bucket).map_or(0, |at| earlier.counts[at].1)))
        });
        Self { scale: self.scale, counts: counts.filter(|(_, count)| *count > 0).collect() }
    }

    /// Adds the values of another distribution of the same field.
    pub fn merge(&mut self, other: Self) {
        if self.counts.is_empty() {
            self.scale = other.scale;
        }
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

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Distribution", 10)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("min", &self.min())?;
        fields.serialize_field("mean", &self.mean())?;
        for (name, percent) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)] {
            fields.serialize_field(name, &self.percentile(percent))?;
        }
        fields.serialize_field("max", &self.max())?;
        fields.serialize_field("buckets", &self.buckets().collect::<Vec<_>>())?;
        fields.end()
    }
}
