//! Numbers with a unit of time in filters and in the conditions of triggers. The unit is a multiple of a nanosecond.

/// The units, and their lengths in ns.
const UNITS: [(&str, u64); 9] = [
    ("ns", 1),
    ("us", 1000),
    // The micro sign, and the Greek letter.
    ("\u{b5}s", 1000),
    ("\u{3bc}s", 1000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Splits the unit from a number: `30ms` gives `30` and 1,000,000 ns. Returns `None` if there is no unit.
pub(crate) fn split_unit(text: &str) -> Option<(&str, u64)> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let (_, length) = UNITS.into_iter().find(|(unit, _)| *unit == &text[digits.len()..])?;
    Some((digits, length))
}

/// Converts a decimal number of units to nanoseconds; the error describes the problem.
pub(super) fn nanoseconds(digits: &str, unit: u64) -> Result<u64, &'static str> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return Err("this is not a duration; expected for example 30ms, 1.5s or 2h");
    }
    let fraction = fraction.trim_end_matches('0');
    // With more than 13 decimal digits the result is not a whole number in any unit.
    let scale = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 13).map(|digits| 10_u128.pow(digits));
    let scale = scale.ok_or("this is no whole number of nanoseconds")?;
    let too_long = "this duration does not fit 64 bits of nanoseconds";
    let number = format!("{whole}{fraction}").parse::<u128>().map_err(|_| too_long)?;
    let scaled = number.checked_mul(unit.into()).ok_or(too_long)?;
    if scaled % scale != 0 {
        return Err("this is no whole number of nanoseconds");
    }
    u64::try_from(scaled / scale).map_err(|_| too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        for (text, expected) in [
            ("7ns", 7),
            ("2.637ms", 2_637_000),
            ("1us", 1000),
            ("1.5\u{b5}s", 1500),
            ("1.5\u{3bc}s", 1500),
            ("1.000000001s", 1_000_000_001),
            ("2m", 120_000_000_000),
            ("2min", 120_000_000_000),
            ("0.5h", 1_800_000_000_000),
            ("18446744073.709551615s", u64::MAX),
            ("0.10000000000000000s", 100_000_000),
        ] {
            let (digits, unit) = split_unit(text).expect(text);
            assert_eq!(nanoseconds(digits, unit), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("1.5ns", "no whole number"),
            ("0.00000000000001h", "no whole number"),
            ("18446744073.709551616s", "does not fit"),
            ("99999999999999999999999999999999999999999h", "does not fit"),
            ("ms", "not a duration"),
            (".5s", "not a duration"),
            ("0x5s", "not a duration"),
            ("1.2.3s", "not a duration"),
        ] {
            let (digits, unit) = split_unit(text).expect(text);
            let error = nanoseconds(digits, unit).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in ["", "42", "0xff", "1e9", "5days", "5S", "1_000"] {
            assert_eq!(split_unit(text), None, "{text}");
        }
    }
}
