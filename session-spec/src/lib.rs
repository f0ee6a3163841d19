//! What a session is, as data: which events are recorded, under which conditions, through which channels, into which sinks, and what is done
//! when something happens. Internal to [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! [`SessionSpec`] is the description of a session, and [`SessionSpec::parse`] and [`SessionSpec::to_toml`] are its text, `session.toml`. Its parts are
//! [`Rule`]s, [`ChannelSpec`]s, [`SinkSpec`]s and [`TriggerSpec`]s. The language of rules stands beside it: names are matched by [`glob`]s, fields are
//! compared by [`filter`]s, rates are bounded by a [`Limit`]. The same language selects from traces that were recorded: [`TraceFilter`] and
//! [`TraceStatistic`].
//!
//! ```text
//!   text ─▶ Rule (as written) ─▶ Compiled (checked) ─▶ selection::select ─▶ events of a process, by name and level
//!                                                └───▶ event_filter::EventFilter ─▶ each firing, by its fields and its rate
//! ```
//!
//! A description is written by a program or a controller, kept in the run directory, and read by every process that it may concern. A rule that a
//! version does not understand becomes an entry with an error, so that older programs take part with the rest.
//!
//! This crate opens no files and starts no threads. It does not know where descriptions are kept, who records, or how sinks are made; those are
//! `tracepoint-run-dir`, `tracepoint-session` and `tracepoint-controller`.

#![forbid(unsafe_code)]

pub mod event_filter;
pub mod filter;
pub mod glob;
mod kinds;
pub mod limit;
mod name;
pub mod random_id;
pub mod selection;
mod spec;
pub mod syntax;
mod trace_filter;
mod trace_statistic;

pub use limit::{Limit, LimitError};
pub use name::{NameError, check_name};
pub use random_id::random_id;
pub use spec::{
    Aggregate, BudgetSpec, ChannelSpec, Compiled, CpuPercent, CpuPercentError, Do, DrainedBy, LevelRule, Limits,
    NameRule, Owner, Rule, RuleEntry, RuleError, RuleProblem, RuleStatistic, SessionSpec, SinkSource, SinkSpec,
    SpecError, State, StreamSpec, Threshold, TriggerEntry, TriggerSpec, When, signal_number,
};
pub use trace_filter::{TraceFilter, TraceFilterError, check_fields};
pub use trace_statistic::TraceStatistic;
