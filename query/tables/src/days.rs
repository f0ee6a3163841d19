//! Days in UTC, the top level of partitions.

use arrow_array::temporal_conversions::date32_to_datetime;

/// Nanoseconds per day.
pub const NANOSECONDS: i64 = 86_400_000_000_000;

/// The day that contains a time, given in nanoseconds since the epoch.
#[inline]
pub fn of(time_ns: i64) -> i64 {
    time_ns.div_euclid(NANOSECONDS)
}

/// Formats a day as `2026-11-23`.
pub fn text(day: i64) -> String {
    let date = i32::try_from(day).ok().and_then(date32_to_datetime);
    date.map(|date| date.date().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [0, -1, i64::MIN, i64::MAX, 1_795_430_400_000_000_000].map(|time| text(of(time)));
        assert_eq!(days, ["1970-01-01", "1969-12-31", "1677-09-21", "2262-04-11", "2026-11-23"]);
    }
}
