//! Times at the beginning of lines.

use std::env;

use tz::{TimeZone, UtcDateTime};

use super::{TextOptions, TimeFormat, decimal};

/// Writes times in one format. The text of the last second is cached, because there are many events per second.
#[derive(Debug)]
pub(super) struct Clock {
    format: TimeFormat,
    zone: TimeZone,
    date: bool,
    second: Option<i64>,
    text: String,
    /// The zero of relative times.
    origin_ns: Option<i64>,
}

impl Clock {
    pub(super) fn new(options: &TextOptions) -> Self {
        let zone = if options.time == TimeFormat::Utc { TimeZone::utc() } else { local_zone() };
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

    /// Appends a time in the chosen format.
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
            let offset = self.zone.find_local_time_type(second).map_or(0, |zone| i64::from(zone.ut_offset()));
            // All times within 64 bits of nanoseconds are within the calendar's range.
            let time = UtcDateTime::from_timespec(second + offset, 0).unwrap_or(UtcDateTime::UNIX_EPOCH);
            self.text = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
            if self.date {
                let date = format!("{:04}-{:02}-{:02} ", time.year(), time.month(), time.month_day());
                self.text.insert_str(0, &date);
            }
            self.second = Some(second);
        }
        line.extend_from_slice(self.text.as_bytes());
        decimal::write_fraction(line, time_ns.rem_euclid(1_000_000_000).unsigned_abs());
    }
}

/// The time zone of this process: the one named by `TZ`, otherwise that of the machine. UTC if there is no such zone.
fn local_zone() -> TimeZone {
    let zone = match env::var("TZ") {
        Ok(name) if name.is_empty() => Ok(TimeZone::utc()),
        Ok(name) => TimeZone::from_posix_tz(&name),
        Err(_) => TimeZone::local(),
    };
    zone.unwrap_or_else(|_| TimeZone::utc())
}
