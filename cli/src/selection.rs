//! The options that select events of recorded traces, and of running programs: by name, level and fields, and by time.

use crate::failure::Failure;
use crate::time_point::{Context, TimePoint};
use clap::Args;
use tracepoint_session_spec::filter::Expression;
use tracepoint_session_spec::glob::Glob;
use tracepoint_session_spec::{Rule, TraceFilter};

/// By name, level and fields.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct EventSelection {
    /// Only events with this `provider:name`, with `*`, `?` and `[a-z]`; `!…` leaves events out. May be given several times
    #[arg(short = 'e', long = "event", value_name = "RULE")]
    events: Vec<String>,
    /// Only events of these levels: `<=info` or `info` for those that are at least as important, `warn`, `==err`, `>=debug`
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Only events whose fields fulfil a condition, for example `size > 4096 && path == "*.rs"` or `took > 30ms` (docs/filters.md)
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    filter: Option<Expression>,
}

impl EventSelection {
    /// The selection as session rules, including rules for the `more` events.
    pub(crate) fn rules(&self, more: &[&str]) -> Vec<Rule> {
        let rule = |event: &str| {
            let mut rule = Rule::new(event);
            // An exclusion has no conditions on the event.
            if !rule.excludes() {
                rule = self.level.iter().fold(rule, Rule::level);
                rule.filter.clone_from(&self.filter);
            }
            rule
        };
        self.events.iter().map(String::as_str).chain(more.iter().copied()).map(rule).collect()
    }

    pub(crate) fn options(&self) -> Vec<String> {
        let events = self.events.iter().map(|event| format!("-e '{event}'"));
        let level = self.level.iter().map(|level| format!("--level '{level}'"));
        let filter = self.filter.iter().map(|filter| format!("--filter '{}'", filter.text()));
        events.chain(level).chain(filter).collect()
    }

    /// True if it selects by level or fields.
    pub(crate) fn has_conditions(&self) -> bool {
        self.level.is_some() || self.filter.is_some()
    }

    pub(crate) fn filter(&self) -> Result<TraceFilter, Failure> {
        let mut filter = TraceFilter::new(&self.events)?;
        if let Some(level) = &self.level {
            filter = filter.level(level)?;
        }
        if let Some(condition) = &self.filter {
            filter = filter.condition(condition.clone());
        }
        Ok(filter)
    }
}

/// Parses a pattern for names.
pub(crate) fn glob(text: &str) -> Result<Glob, String> {
    Glob::parse(text).map_err(|error| error.to_string())
}

/// By time.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Times")]
pub(crate) struct TimeSelection {
    /// Only events from this time on: `10s ago`, `+5s` after the begin of the trace, `-5s` before its end, `16:24:31.8`, …
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<TimePoint>,
    /// Only events up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<TimePoint>,
}

impl TimeSelection {
    /// True if resolving it needs the time range of the trace.
    pub(crate) fn refers_to_the_trace(&self) -> bool {
        [self.since, self.until].into_iter().flatten().any(TimePoint::refers_to_the_trace)
    }

    pub(crate) fn is_given(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    pub(crate) fn has_begin(&self) -> bool {
        self.since.is_some()
    }

    pub(crate) fn resolve(&self, context: &Context) -> Result<TimeRange, Failure> {
        let resolve = |time: Option<TimePoint>| time.map(|time| time.resolve(context)).transpose();
        Ok(TimeRange { since: resolve(self.since)?, until: resolve(self.until)? })
    }
}

/// A range of event times, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeRange {
    pub(crate) since: Option<i64>,
    pub(crate) until: Option<i64>,
}

impl TimeRange {
    /// True if the range overlaps the interval from `from` to `to`.
    pub(crate) fn includes(&self, from: i64, to: i64) -> bool {
        self.since.is_none_or(|since| to >= since) && self.until.is_none_or(|until| from <= until)
    }

    /// True if this time and all later ones are after the range.
    pub(crate) fn is_over(&self, time: i64) -> bool {
        self.until.is_some_and(|until| time > until)
    }
}
