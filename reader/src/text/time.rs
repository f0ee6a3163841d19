//! Times of day.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{TextOptions, decimal};

/// Writes times in one time zone. The text of the last second is cached, because there are many events per second.
#[derive(Debug)]
pub(super) struct Clock {
    zone: TimeZone,
    date: bool,
    second: Option<i64>,
    text: String,
}

impl Clock {
    pub(super) fn new(options: TextOptions) -> Self {
        let zone = if options.utc { TimeZone::UTC } else { TimeZone::system() };
        Self { zone, date: options.date, second: None, text: String::new() }
    }

    /// Appends a time in nanoseconds since the epoch.
    pub(super) fn write(&mut self, line: &mut Vec<u8>, time_ns: i64) {
        let second = time_ns.div_euclid(1_000_000_000);
        if self.second != Some(second) {
            // All times that 64 bits of nanoseconds reach are within the calendar's range.
            let timestamp = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
            let time = self.zone.to_datetime(timestamp);
            self.text = if self.date { format!("{} {}", time.date(), time.time()) } else { time.time().to_string() };
            self.second = Some(second);
        }
        line.extend_from_slice(self.text.as_bytes());
        decimal::write_fraction(line, time_ns.rem_euclid(1_000_000_000).unsigned_abs());
    }
}
