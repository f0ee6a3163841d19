//! Times at the beginning of lines.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{TextOptions, TimeFormat, decimal};

/// Writes times in one format. The text of the last second is cached, because there are many events per second.
#[derive(Debug)]
pub(super) struct Clock {
    format: TimeFormat,
    zone: TimeZone,
    date: bool,
    second: Option<i64>,
    text: String,
    /// The time to which times are relative.
    origin_ns: Option<i64>,
}

impl Clock {
    pub(super) fn new(options: &TextOptions) -> Self {
        let zone = if options.time == TimeFormat::Utc { TimeZone::UTC } else { TimeZone::system() };
        let (format, date, origin_ns) = (options.time, options.date, options.origin_ns);
        Self { format, zone, date, second: None, text: String::new(), origin_ns }
    }

    /// Appends the time of an event, in nanoseconds since the epoch.
    pub(super) fn event(&mut self, line: &mut Vec<u8>, time_ns: i64) {
        self.write(line, time_ns);
        if self.format == TimeFormat::Delta {
            self.origin_ns = Some(time_ns);
        }
    }

    /// Appends a time between events.
    pub(super) fn write(&mut self, line: &mut Vec<u8>, time_ns: i64) {
        match self.format {
            TimeFormat::Local | TimeFormat::Utc => self.of_day(line, time_ns),
            TimeFormat::Relative | TimeFormat::Delta => {
                let origin = *self.origin_ns.get_or_insert(time_ns);
                line.push(if time_ns < origin { b'-' } else { b'+' });
                decimal::write_seconds(line, time_ns.abs_diff(origin));
            }
            TimeFormat::Epoch => {
                if time_ns < 0 {
                    line.push(b'-');
                }
                decimal::write(line, time_ns.unsigned_abs());
            }
        }
    }

    fn of_day(&mut self, line: &mut Vec<u8>, time_ns: i64) {
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
