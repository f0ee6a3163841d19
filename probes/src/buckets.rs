//! The buckets of a histogram. Integers below 1,024 have a bucket each. Above, each power of two is divided into 32 buckets of equal width, as in
//! `HdrHistogram` (Tene); the powers of two of fractional numbers are divided in the same way. The width of such a bucket is at most 1/32 of its
//! lower bound, so its middle is within 1/64 (1.6 %) of each of its values.

/// Buckets per power of two.
const PARTS: u32 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Integers with fewer bits have a bucket each.
const UNIT_BITS: u32 = 10;
/// Number of buckets of unsigned 64-bit integers.
pub(crate) const INTEGER: usize = (1 << UNIT_BITS) + ((64 - UNIT_BITS) * PARTS) as usize;
/// Number of exponents of fractional numbers with buckets of their own: from 2^-64 up to 2^64.
const EXPONENTS: u32 = 128;
/// Exponent and part of 2^-64. The bias of the exponent is 1023.
const FIRST_PART: u64 = (1023 - 64) << PART_BITS;
/// Number of buckets of fractional numbers: the first one is for smaller numbers, the last one for larger ones.
pub(crate) const FRACTION: usize = (EXPONENTS * PARTS) as usize + 2;

/// The bucket of an unsigned integer.
#[inline]
pub(crate) fn of_integer(value: u64) -> usize {
    if value >> UNIT_BITS == 0 { value as usize } else { of_large(value, UNIT_BITS) }
}

/// The bucket of an integer among the coarser buckets of charts ([`integer_step`]).
pub(crate) fn step_of(value: u64) -> usize {
    if value >> (PART_BITS + 1) == 0 { value as usize } else { of_large(value, PART_BITS + 1) }
}

/// The bucket of an integer of more than `unit_bits` bits.
#[inline(always)]
fn of_large(value: u64, unit_bits: u32) -> usize {
    // Only the leading PART_BITS + 1 bits matter.
    let shift = 63 - PART_BITS - value.leading_zeros();
    let power = (shift + PART_BITS - unit_bits) << PART_BITS;
    (1_usize << unit_bits) + power as usize + ((value >> shift) - u64::from(PARTS)) as usize
}

/// The lowest value of a bucket of integers. The end of the last bucket, 2^64, is returned as 2^64 - 1.
pub(crate) fn integer_bound(bucket: usize) -> u64 {
    bound(bucket, UNIT_BITS)
}

/// The lowest value of a bucket among the coarser buckets of charts. From 64 on, their width is proportional to their values.
pub(crate) fn integer_step(step: usize) -> u64 {
    bound(step, PART_BITS + 1)
}

fn bound(bucket: usize, unit_bits: u32) -> u64 {
    let Some(above) = bucket.checked_sub(1 << unit_bits) else { return bucket as u64 };
    let shift = (above >> PART_BITS) as u32 + unit_bits - PART_BITS;
    let part = (above % PARTS as usize) as u64 + u64::from(PARTS);
    if shift + PART_BITS > 63 { u64::MAX } else { part << shift }
}

/// The bucket of a number that is neither negative nor NaN.
#[inline]
pub(crate) fn of_fraction(value: f64) -> usize {
    let parts = value.to_bits() >> (52 - PART_BITS);
    // Smaller numbers get bucket 0.
    (parts + 1).saturating_sub(FIRST_PART).min(FRACTION as u64 - 1) as usize
}

/// The lowest value of a bucket of fractional numbers.
pub(crate) fn fraction_bound(bucket: usize) -> f64 {
    match bucket {
        0 => 0.0,
        FRACTION.. => f64::INFINITY,
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
        assert_eq!((of_integer(u64::MAX), integer_bound(INTEGER)), (INTEGER - 1, u64::MAX));
        for bucket in 0..FRACTION - 1 {
            let (first, next) = (fraction_bound(bucket), fraction_bound(bucket + 1));
            assert_eq!(
                (of_fraction(first), of_fraction(next.next_down()), of_fraction(next)),
                (bucket, bucket, bucket + 1)
            );
        }
        assert_eq!((of_fraction(0.0), of_fraction(f64::INFINITY)), (0, FRACTION - 1));
    }

    #[test]
    fn buckets_are_narrow() {
        assert!((0..1024).all(|value| integer_bound(of_integer(value)) == value), "one for each");
        for bucket in 1024..INTEGER {
            let (low, high) = (integer_bound(bucket), integer_bound(bucket + 1));
            assert!(high - low <= low / 32, "{bucket}");
        }
        for bucket in 1..FRACTION - 1 {
            let (low, high) = (fraction_bound(bucket), fraction_bound(bucket + 1));
            assert!(high - low <= low / 32.0, "{bucket}");
        }
    }

    #[test]
    fn a_bucket_is_in_one_step() {
        for bucket in 0..INTEGER {
            let (low, high) = (integer_bound(bucket), integer_bound(bucket + 1) - 1);
            let step = step_of(low);
            assert_eq!(step, step_of(high.max(low)), "{bucket}");
            assert!(
                integer_step(step) <= low && (high < integer_step(step + 1) || step == step_of(u64::MAX)),
                "{bucket}"
            );
        }
    }
}
