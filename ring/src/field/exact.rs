//! Compares integers and floating-point numbers without rounding.

use std::cmp::Ordering;

/// Compares an integer with a floating-point number exactly; `None` if the latter is NaN. The integer is within ±2^64.
#[doc(hidden)]
#[inline]
pub fn compare_exactly(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // The cast rounds towards zero and saturates at 128 bits, which is beyond every integer here.
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is compared apart")]
    let whole = float as i128;
    integer.cmp(&whole).then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0))).into()
}
