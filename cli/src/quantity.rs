//! Sizes and times on the command line.

use std::time::Duration;

/// A number of bytes: `1500`, `64K`, `8M`, `1G`; powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let units = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    let (number, unit) = split(text, &units).unwrap_or((text, 1));
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.ok_or_else(|| "give a number of bytes, such as 1500, 64K or 8M".to_owned())
}

/// A time: `500ms`, `10s`, `5m`, `2h`; without a unit, seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let (number, unit) = split(text, &units).unwrap_or((text, 1000));
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.map(Duration::from_millis).ok_or_else(|| "give a time, such as 500ms, 10s or 5m".to_owned())
}

/// The number and the unit.
fn split<'a>(text: &'a str, units: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    units.iter().find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number, *unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(["7", "2K", "3M", "1G"].map(bytes), [Ok(7), Ok(2048), Ok(3 << 20), Ok(1 << 30)]);
        assert_eq!(["7", "2s", "3m", "1h"].map(time), [7, 2, 180, 3600].map(|s| Ok(Duration::from_secs(s))));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "K", "-1", "1.5", "7x", "99999999999999999999", "99999999999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert!(time("7d").is_err());
    }
}
