//! The buckets of a histogram: each power of two is divided into 32 of equal width, as in `HdrHistogram` (Tene). The bounds of a bucket differ
//! by less than 1/32 of its lower bound, so that its middle is within 1/64 (1.6 %) of each of its values. Integers below 64 have a bucket each.

/// The buckets into which each power of two is divided.
const PARTS: u32 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// The buckets of unsigned integers of 64 bits.
pub(crate) const INTEGER: usize = ((64 - PART_BITS + 1) * PARTS) as usize;
/// The exponents of floating-point numbers that have buckets of their own: from 2^-64 up to 2^64.
const EXPONENTS: u32 = 128;
/// The exponent and the part of 2^-64: 1023 is the bias of the exponent.
const FIRST_PART: u64 = (1023 - 64) << PART_BITS;
/// The buckets of floating-point numbers, after one for those below and before one for those above.
pub(crate) const FLOAT: usize = (EXPONENTS * PARTS) as usize + 2;

/// The scale of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Integer,
    Float,
}

impl Scale {
    /// The number of buckets.
    pub(crate) fn buckets(self) -> usize {
        match self {
            Self::Integer => INTEGER,
            Self::Float => FLOAT,
        }
    }

    /// The bounds of a bucket: the first value in it, and the first that is above it.
    #[expect(clippy::cast_precision_loss, reason = "bounds have few significant bits")]
    pub(crate) fn bounds(self, bucket: usize) -> (f64, f64) {
        match self {
            Self::Integer => (integer_bound(bucket) as f64, integer_bound(bucket + 1) as f64),
            Self::Float => (float_bound(bucket), float_bound(bucket + 1)),
        }
    }

    /// The value that stands for all of a bucket: its only one, or its middle.
    pub(crate) fn middle(self, bucket: usize) -> f64 {
        let (low, high) = self.bounds(bucket);
        match self {
            Self::Integer if high - low <= 1.0 => low,
            Self::Float if bucket == 0 => 0.0,
            Self::Float if bucket == FLOAT - 1 => low,
            _ => f64::midpoint(low, high),
        }
    }
}

/// The bucket of an unsigned integer.
#[inline]
pub(crate) fn of_integer(value: u64) -> usize {
    // The bits below the leading PART_BITS + 1 do not matter.
    let shift = (64 - (PART_BITS + 1)).saturating_sub(value.leading_zeros());
    ((shift << PART_BITS) as u64 + (value >> shift)) as usize
}

/// The lowest value of a bucket of integers; that past the last is 2^64, here 2^64 - 1.
fn integer_bound(bucket: usize) -> u64 {
    if bucket >= INTEGER {
        return u64::MAX;
    }
    let shift = (bucket as u32 >> PART_BITS).saturating_sub(1);
    (bucket as u64 - (u64::from(shift) << PART_BITS)) << shift
}

/// The bucket of a number that is not negative and not NaN.
#[inline]
pub(crate) fn of_float(value: f64) -> usize {
    let parts = value.to_bits() >> (52 - PART_BITS);
    // Below the first bucket: 0.
    (parts + 1).saturating_sub(FIRST_PART).min(FLOAT as u64 - 1) as usize
}

fn float_bound(bucket: usize) -> f64 {
    match bucket {
        0 => 0.0,
        FLOAT.. => f64::INFINITY,
        _ => f64::from_bits((FIRST_PART + bucket as u64 - 1) << (52 - PART_BITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_one_before_ends() {
        for bucket in 0..INTEGER - 1 {
            let (first, next) = (integer_bound(bucket), integer_bound(bucket + 1));
            assert!(first < next, "{bucket}");
            assert_eq!((of_integer(first), of_integer(next - 1), of_integer(next)), (bucket, bucket, bucket + 1));
        }
        assert_eq!(of_integer(u64::MAX), INTEGER - 1);
        for bucket in 0..FLOAT - 1 {
            let (first, next) = (float_bound(bucket), float_bound(bucket + 1));
            assert_eq!((of_float(first), of_float(next.next_down()), of_float(next)), (bucket, bucket, bucket + 1));
        }
        assert_eq!((of_float(0.0), of_float(f64::INFINITY)), (0, FLOAT - 1));
    }

    #[test]
    fn the_middle_of_a_bucket_is_within_a_sixty_fourth_of_its_values() {
        for bucket in 0..INTEGER - 1 {
            let (low, high, middle) =
                (integer_bound(bucket), integer_bound(bucket + 1) - 1, Scale::Integer.middle(bucket));
            for value in [low, high] {
                #[expect(clippy::cast_precision_loss, reason = "the nearest is near enough")]
                let value = value as f64;
                assert!((middle - value).abs() <= value / 64.0, "{bucket}: {value} {middle}");
            }
        }
        for bucket in 1..FLOAT - 1 {
            let (low, middle) = (float_bound(bucket), Scale::Float.middle(bucket));
            assert!((middle - low) <= low / 64.0 && (float_bound(bucket + 1) - middle) <= low / 64.0, "{bucket}");
        }
    }
}
