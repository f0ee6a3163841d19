//! Sessions: which events are recorded, through which rings, into which sinks.
//!
//! The nouns: a [`Session`] has rules, which choose events by name and level; a [`Channel`], whose rings the events go into;
//! and sinks (see [`tracepoint_sinks`]), which take what the rings hold. While it runs, one background thread,
//! `tracepoint-drain`, moves packets from the rings to the sinks. What became of every event is in its account.
//!
//! The rings are files on a memory file system, in the [run directory](RunDir) unless the session names another one, so that a
//! process that is killed leaves what it recorded; `docs/format-ring.md` describes them.
//!
//! ```
//! use tracepoint_control::{Rule, Session, sinks::CtfSink};
//!
//! tracepoint::define_trace! {
//!     provider = "shop";
//!     /// Somebody paid.
//!     #[level(Info)]
//!     pub paid(cents: u64) { cents: u64 = cents }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let dir = place.path().join("trace");
//! let session = Session::builder("purchases").events(Rule::new("shop:*").level("<=info")).sink(CtfSink::create(dir)?).start()?;
//! tracepoint::trace!(paid(1250));
//! let summary = session.stop()?;
//! assert_eq!(summary.events()[0].recorded, 1);
//! # Ok(())
//! # }
//! ```
//!
//! A program that starts an [`Agent`] can be recorded from outside while it runs, by `tracectl` or by a [`Controller`]: which processes
//! there are ([`Application`]), and sessions that are kept in the run directory ([`NamedSession`], [`SessionSpec`]).
//! `docs/format-run-directory.md` has the files that they share.
//!
//! This crate does not know how bytes are encoded: that is between the core, which writes packets, and the sinks.

// Allowed in few modules: those that map the files of rings and of statistics, the one that guards the mappings, the one that follows forks, and the one
// that opens the kernel's events.
#![deny(unsafe_code)]

mod agent;
mod budget;
mod catalog;
mod channel_room;
mod controller;
pub mod core_dump;
mod drain_thread;
mod event;
mod kernel;
mod recorder;
mod rule_match;
mod session;
mod state;
mod statistics;
pub mod testing;
pub mod trigger;
mod unfinished;

pub use agent::{Agent, AgentBuilder, AgentError};
pub use controller::{
    Acknowledged, Application, Controller, Leftover, Listed, Mismatch, NamedSession, Removed, SessionInCode,
    SilenceReason, Unbuilt, Unmatched,
};
pub use kernel::{KernelError, KernelEvents, KernelRecorded, KernelRecorder, KernelRecording};
pub use recorder::{Recorded, Recorder};
pub use session::{Session, SessionBuilder, SessionError, SinkFailure, Status, Summary};
pub use state::{Dump, StateDump, state_dump};
pub use tracepoint_core::channel::Channel;
pub use tracepoint_core::clock::Clock;
/// Why a snapshot cannot be taken.
pub use tracepoint_reader::RecoverError;
pub use tracepoint_reader::process::{ProcessKey, ProcessKeyError};
pub use tracepoint_run_dir::{
    Ack, AckState, AppStatus, ApplicationInfo, ArgumentInfo, BandwidthUse, Counters, DirError, FieldInfo, Notice,
    OverBudget, Rights, RingDirError, Rotated, RuleAck, RunDir, RunDirError, StateDumpStatus, StreamStatus,
    TracepointInfo, TracepointKind, TriggerAck,
};
pub use tracepoint_session_io::statistics::{ProcessStatistics, SessionStatistics, StatisticResult};
pub use tracepoint_session_io::store::Rotation;
pub use tracepoint_session_io::{ControlError, SnapshotSummary};
pub use tracepoint_session_spec::{
    BudgetSpec, ChannelSpec, CpuPercent, CpuPercentError, Do, DrainedBy, Limit, LimitError, Limits, NameError, Rule,
    RuleError, RuleProblem, RuleStatistic, SessionSpec, SinkSource, SinkSpec, SpecError, State, StreamSpec,
    TraceFilter, TraceFilterError, TraceStatistic, TriggerSpec, When, check_fields, filter,
};
/// The sinks that a session can be given, and the trait for sinks of one's own.
pub use tracepoint_sinks as sinks;
pub use tracepoint_sinks::consumer_loop::DrainCounters;
pub use tracepoint_sinks::own_thread::inherit_scheduling;
pub use unfinished::rings_behind;
