//! The options that select events of recorded traces, and of running programs.

use crate::failure::Failure;
use clap::Args;
use tracepoint_control::filter::Expression;
use tracepoint_control::{Rule, TraceFilter};

/// By name, level and fields.
#[derive(Clone, Debug, Args)]
pub(crate) struct EventSelection {
    /// Only events with this `provider:name`, with `*`, `?` and `[a-z]`; `!…` leaves events out. May be given several times
    #[arg(short = 'e', long = "event", value_name = "RULE")]
    events: Vec<String>,
    /// Only events of these levels: `<=info` or `info` for those that are at least as important, `==err`, `>=debug`
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Only events whose fields fulfil a condition, for example `size > 4096 && path == "*.rs"` (docs/filters.md)
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    filter: Option<Expression>,
}

impl EventSelection {
    /// The same as rules of a session, and those for `more` events.
    pub(crate) fn rules(&self, more: &[&str]) -> Vec<Rule> {
        let rule = |event: &str| {
            let mut rule = Rule::new(event);
            // An exclusion has no conditions on the event.
            if !rule.excludes() {
                rule.level.clone_from(&self.level);
                rule.filter = self.filter.as_ref().map(|filter| filter.text().to_owned());
            }
            rule
        };
        self.events.iter().map(String::as_str).chain(more.iter().copied()).map(rule).collect()
    }

    /// Whether it selects by level or fields.
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
