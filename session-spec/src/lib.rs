//! The description of a session as data: the events to record, the conditions, the channels, the sinks, and the actions of triggers.
//! Internal to [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! [`SessionSpec`] is the description of a session, and [`SessionSpec::parse`] and [`SessionSpec::to_toml`] are its text, `session.toml`. Its parts are
//! [`Rule`]s, [`ChannelSpec`]s, [`SinkSpec`]s and [`TriggerSpec`]s. The crate also has the language of rules: [`glob`]s match names,
//! [`filter`]s compare fields, and a [`Limit`] bounds rates. The same language selects from recorded traces, with the feature `traces`:
//! `TraceFilter` and `TraceStatistic`.
//!
//! ```text
//!   text ─▶ Rule (parsed) ─▶ selection::select ─▶ events of a process, by name and level
//!                      └───▶ event_filter::Condition (compiled) ─▶ each firing, by its fields and its rate
//! ```
//!
//! A program or a controller writes a description, the run directory stores it, and every process that it may concern reads it. A rule that
//! a version does not understand becomes an entry with an error, so that older programs still apply the other rules.
//!
//! This crate starts no threads, and uses no files. It does not know where descriptions are stored, which process records, or how sinks are
//! created: see `tracepoint-run-dir`, `tracepoint-session-io`, `tracepoint-session` and `tracepoint-controller`.

#![forbid(unsafe_code)]

pub mod event_filter;
pub mod filter;
mod from_text;
pub mod glob;
#[cfg(feature = "traces")]
mod kinds;
pub mod limit;
mod name;
pub mod random_id;
pub mod selection;
mod spec;
pub mod syntax;
pub mod table;
#[cfg(feature = "traces")]
mod trace_filter;
#[cfg(feature = "traces")]
mod trace_statistic;

pub use limit::{Limit, LimitError};
pub use name::{NameError, check_name};
pub use random_id::random_id;
pub use spec::{
    Aggregate, BudgetSpec, ChannelSpec, CpuPercent, CpuPercentError, CtfSinkSpec, DrainedBy, DropPolicy, DtSinkSpec,
    ExistingTraces, LevelError, LevelRule, Limits, NameRule, NameRuleError, ObjectSinkSpec, Owner, ProgramPattern,
    Rule, RuleEntry, RuleError, RuleProblem, RuleStatistic, RuleStatisticError, SessionSpec, SinkSource, SinkSpec,
    SpecError, State, StreamSinkSpec, StreamSpec, TextSinkSpec, Threshold, ThresholdError, TriggerAction,
    TriggerCondition, TriggerEntry, TriggerPartError, TriggerSpec, UdpSinkSpec, signal_number,
};
#[cfg(feature = "traces")]
pub use trace_filter::{TraceFilter, TraceFilterError, check_fields};
#[cfg(feature = "traces")]
pub use trace_statistic::TraceStatistic;
