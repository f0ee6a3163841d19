//! Times in a trace on the command line.

use crate::argument_error::ArgumentError;
use crate::failure::Failure;
use crate::units;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use std::str::FromStr;
use std::time::Duration;

/// A time as given by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimePoint {
    /// Before now.
    Ago(Duration),
    /// After the beginning of the trace.
    AfterBegin(Duration),
    /// Before the end of the trace.
    BeforeEnd(Duration),
    /// A time of day.
    Day(Time),
    /// A local date and time.
    Local(DateTime),
    /// Nanoseconds since the epoch.
    Epoch(i64),
}

/// The reference of relative times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// The first and the last time of the trace, in nanoseconds since the epoch; `None` if they are not known.
    pub(crate) range: Option<(i64, i64)>,
    /// True if local times are in UTC.
    pub(crate) utc: bool,
}

impl FromStr for TimePoint {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let text = text.trim();
        let wrong = || {
            ArgumentError::from(
                "expected a time: `10s ago`, `+5s`, `-5s`, `16:24:31.8`, `2026-11-23 16:24:31`, `2026-11-23T16:24:31Z`, or \
                 nanoseconds since 1970",
            )
        };
        let duration = |text: &str| units::duration(text.trim()).map_err(|_| wrong());
        if let Some(text) = text.strip_suffix("ago") {
            duration(text).map(Self::Ago)
        } else if let Some(text) = text.strip_prefix('+') {
            duration(text).map(Self::AfterBegin)
        } else if let Some(text) = text.strip_prefix('-') {
            duration(text).map(Self::BeforeEnd)
        } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse().map(Self::Epoch).map_err(|_| wrong())
        } else if let Ok(time) = text.parse::<Timestamp>() {
            i64::try_from(time.as_nanosecond()).map(Self::Epoch).map_err(|_| wrong())
        } else if text.contains('-') {
            text.parse().map(Self::Local).map_err(|_| wrong())
        } else {
            text.parse().map(Self::Day).map_err(|_| wrong())
        }
    }
}

impl TimePoint {
    /// True if resolving it needs the time range of the trace.
    pub(crate) const fn refers_to_the_trace(self) -> bool {
        matches!(self, Self::AfterBegin(_) | Self::BeforeEnd(_) | Self::Day(_))
    }

    /// Resolves to nanoseconds since the epoch.
    pub(crate) fn resolve(self, context: &Context) -> Result<i64, Failure> {
        let now = || nanoseconds(Timestamp::now());
        let begin_and_end = || {
            let reason = "`+5s` and `-5s` refer to the beginning and the end of a trace that is stored and not empty";
            context.range.ok_or_else(|| Failure::Usage(reason.to_owned()))
        };
        let span = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let zone = if context.utc { TimeZone::UTC } else { TimeZone::system() };
        let local = |time: DateTime| {
            let zoned = time.to_zoned(zone.clone());
            zoned.map(|time| nanoseconds(time.timestamp())).map_err(|error| Failure::Usage(error.to_string()))
        };
        Ok(match self {
            Self::Epoch(time) => time,
            Self::Ago(time) => now().saturating_sub(span(time)),
            Self::AfterBegin(time) => begin_and_end()?.0.saturating_add(span(time)),
            Self::BeforeEnd(time) => begin_and_end()?.1.saturating_sub(span(time)),
            Self::Local(time) => local(time)?,
            Self::Day(time) => {
                let begin = context.range.map_or_else(now, |(begin, _)| begin);
                let begin = Timestamp::from_nanosecond(begin.into()).unwrap_or(Timestamp::UNIX_EPOCH);
                let day = zone.to_datetime(begin).date();
                let found = local(day.to_datetime(time))?;
                // In a trace that passes midnight, this time is on the second day.
                match (context.range, day.checked_add(1.day())) {
                    (Some((begin, end)), Ok(next)) if found < begin => {
                        Some(local(next.to_datetime(time))?).filter(|next| *next <= end).unwrap_or(found)
                    }
                    _ => found,
                }
            }
        })
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn times_are_resolved() {
        // 2026-11-23 23:59:50 to 00:10:10 on the next day.
        let begin = 1_795_478_390 * SECOND;
        let context = Context { range: Some((begin, begin + 620 * SECOND)), utc: true };
        for (text, expected) in [
            ("1795478390000000007", begin + 7),
            ("+5s", begin + 5 * SECOND),
            ("+1m 30s", begin + 90 * SECOND),
            ("-500ms", begin + 620 * SECOND - SECOND / 2),
            ("23:59:51.25", begin + 5 * SECOND / 4),
            ("23:59:40", begin - 10 * SECOND),
            ("00:00:10", begin + 20 * SECOND),
            ("2026-11-23 23:59:51", begin + SECOND),
            ("2026-11-23T23:59:51", begin + SECOND),
            ("2026-11-24T00:59:51+01:00", begin + SECOND),
            ("2026-11-23T23:59:50.000000007Z", begin + 7),
        ] {
            let time: TimePoint = text.parse().unwrap();
            assert_eq!(time.resolve(&context).unwrap(), expected, "{text}");
        }
        for wrong in ["", "soon", "10s", "ago", "+", "25:00:00", "2026-13-01 00:00:00", "99999999999999999999"] {
            assert!(wrong.parse::<TimePoint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_trace_is_needed_for_times_that_refer_to_it() {
        let none = Context { range: None, utc: true };
        for text in ["+5s", "-5s"] {
            assert!(text.parse::<TimePoint>().unwrap().resolve(&none).is_err());
        }
        let now = nanoseconds(Timestamp::now());
        let ago = "1h ago".parse::<TimePoint>().unwrap().resolve(&none).unwrap();
        assert!((now - 3600 * SECOND..now - 3500 * SECOND).contains(&ago));
    }
}
