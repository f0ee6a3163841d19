//! The options that select events of recorded traces.

use crate::failure::Failure;
use clap::Args;
use tracepoint_control::TraceFilter;
use tracepoint_control::filter::Expression;

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
