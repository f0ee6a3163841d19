//! Floating-point numbers with six significant digits, in the format of C's `%g`.

use std::io::Write;

/// Appends `number`.
pub(super) fn write(line: &mut Vec<u8>, number: f64) {
    if number.is_sign_negative() {
        line.push(b'-');
    }
    let number = number.abs();
    if number.is_nan() {
        line.extend_from_slice(b"nan");
        return;
    }
    if number.is_infinite() {
        line.extend_from_slice(b"inf");
        return;
    }
    // The exponent after rounding decides the form.
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let digits = (5 - exponent).unsigned_abs() as usize;
        let fixed = format!("{number:.digits$}");
        line.extend_from_slice(trim(&fixed).as_bytes());
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a vector cannot fail.
        let _ = write!(line, "{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs());
    }
}

/// Removes trailing zeros of a fraction.
fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::write;

    #[test]
    fn floats_are_printed_like_percent_g() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (100_000.0, "100000"),
            (1_234_567.0, "1.23457e+06"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (999_999.5, "1e+06"),
            (5e-324, "4.94066e-324"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (number, text) in cases {
            let mut line = Vec::new();
            write(&mut line, number);
            assert_eq!(line, text.as_bytes(), "{number:?}");
        }
    }
}
