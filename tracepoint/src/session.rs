//! Sessions: recording the events of this process, from its code or, with an [`Agent`], under control from outside.
//!
//! ```
//! use tracepoint::session::{Channel, Rule, Session};
//!
//! tracepoint::define_trace! { provider = "cafe"; pub paid(cents: u64) { cents: u64 = cents } }
//!
//! # let place = std::env::temp_dir().join(format!("tracepoint-doc-session-{}", std::process::id()));
//! // A flight recorder: its rings always contain the newest events.
//! let flight = Session::builder("flight")
//!     .events(Rule::new("cafe:*").filter("cents > 100").limit("1000/s"))
//!     .channel(Channel::overwrite(1 << 20))
//!     .start()?;
//! tracepoint::trace!(paid(1250));
//! let snapshot = flight.snapshot(&place)?; // a CTF trace; the session continues
//! assert_eq!(snapshot.traces.len(), 1);
//! flight.enable("io:*").unwrap_err(); // rules come and go while it runs; this one matches no event of the program
//! let summary = flight.stop()?;
//! assert_eq!(summary.events().iter().map(|event| event.recorded).sum::<u64>(), 1);
//! # std::fs::remove_dir_all(&place)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | make the process controllable by `tracectl` | [`Agent`], [`AgentBuilder`] |
//! | record from the code | [`Session`], [`SessionBuilder`]: [`Rule`]s, [`Channel`]s, [`sinks`](crate::sinks), a [`BudgetSpec`] |
//! | record the state that existed before | [`state_dump()`] |
//! | see the result | [`Status`] while it runs, [`Summary`] at the end: events that were recorded, filtered and lost, with reasons |
//! | describe a session as data, `session.toml` | [`SessionSpec`] with [`ChannelSpec`], [`SinkSpec`], [`Limits`] |
//! | choose where processes meet | [`RunDir`] |
//!
//! Starting and changing a session fail with a [`SessionError`], which names the object and what helps; a rule that matches no event is an
//! error with suggestions. A failing sink does not end a session: its packets are counted as lost, and [`Session::stop`] returns the
//! [`SinkFailure`]s. A session has a thread that moves packets to its sinks, and usually one that creates rings for threads to come; both
//! sleep while there is nothing to do. Its memory is bounded, and allocated outside the events; an event that does not fit is lost and counted.
//!
//! Next: [`sinks`](crate::sinks), [`trigger`](crate::trigger), [`testing`](crate::testing); the book: *Sessions in code*, *Channels, memory
//! and losses*.

pub use tracepoint_core::channel::{ConfigError, TooManyEvents};
pub use tracepoint_reader::{ReadError, RecoverError};
#[cfg(target_os = "linux")]
pub use tracepoint_run_dir::Rights;
pub use tracepoint_run_dir::{
    Counters, DirError, Notice, OverBudget, RingDirError, RunDir, RunDirError, StateDumpStatus,
};
pub use tracepoint_session::{
    Agent, AgentBuilder, AgentError, Channel, Dump, Session, SessionBuilder, SessionError, SinkFailure, StateDump,
    Status, Summary, state_dump,
};
pub use tracepoint_session_io::SnapshotSummary;
pub use tracepoint_session_io::statistics::StatisticResult;
pub use tracepoint_session_spec::{
    BudgetSpec, ChannelSpec, CpuPercent, CpuPercentError, CtfSinkSpec, DrainedBy, DropPolicy, DtSinkSpec,
    ExistingTraces, LevelError, LevelRule, Limit, LimitError, Limits, NameError, NameRule, NameRuleError,
    ObjectSinkSpec, ProgramPattern, Rule, RuleError, RuleProblem, RuleStatistic, RuleStatisticError, SessionSpec,
    SinkSource, SinkSpec, SpecError, State, StreamSinkSpec, StreamSpec, TextSinkSpec, UdpSinkSpec,
};
pub use tracepoint_sinks::consumer_loop::DrainCounters;
pub use tracepoint_sinks::own_thread::inherit_scheduling;
