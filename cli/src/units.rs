//! Sizes and times on the command line, and in what is shown.

use std::time::Duration;

/// Reads `100`, `64K`, `10M`, `1G`: bytes, by powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, factor) = split(text, &[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("", 1)]);
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "expected a size, for example `64K`, `100M` or `2G`".to_owned())
}

/// Reads `10M/s`, or `10M`: bytes in a second, by powers of 1024.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    size(text.strip_suffix("/s").unwrap_or(text))
        .map_err(|_| "expected a rate, for example `64K/s` or `10M/s`".to_owned())
}

/// Reads `10s`, `500ms`, `5m`, `2h`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, milliseconds) = split(text, &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("", 1000)]);
    let time = number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds));
    time.map(Duration::from_millis)
        .ok_or_else(|| "expected a time, for example `500ms`, `10s`, `5m` or `1h`".to_owned())
}

/// The number, and what its unit stands for.
fn split<'a>(text: &'a str, units: &[(&str, u64)]) -> (&'a str, u64) {
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    found.unwrap_or((text, 1))
}

/// Bytes as people read them: `1.5 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read() {
        for (text, expected) in [("1", 1), ("64K", 65_536), ("3M", 3 << 20), ("2G", 2 << 30)] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "K", "-1", "1.5", "7x", "1T", "99999999999999999999", "99999999999999999G"] {
            assert!(size(wrong).is_err() && rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!((rate("10M/s"), rate("64K")), (Ok(10 << 20), Ok(64 << 10)));
        for (text, expected) in
            [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000), ("3", 3000), ("0", 0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(expected)), "{text}");
        }
        for wrong in ["", "x", "s", "7d", "-1s", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
