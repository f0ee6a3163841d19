//! Recording in a traced process: sessions, the threads that drain them, and the agent through which controllers control them. Internal to
//! [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! The nouns: a [`Session`] has rules, which select events by name and level; a [`Channel`], to whose rings the events are written; and
//! sinks (see [`tracepoint_sinks`]), which store the contents of the rings. While it runs, one background thread, `tracepoint-drain`, moves
//! packets from the rings to the sinks. The session's account counts every event as recorded or lost.
//!
//! The rings are files on a memory file system, in the run directory unless the session names another one, so that the recorded events
//! survive if the process is killed; `docs/format-ring.md` describes the files.
//!
//! ```
//! use tracepoint::{Rule, Session, sinks::CtfSink};
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
//! Controllers such as `tracectl` can record a program that starts an [`Agent`] while it runs: the agent reads the sessions in the run
//! directory, and records for those that concern the process. [`testing`] has sessions for the tests of a program.
//!
//! This crate does not know controllers, collectors and viewers, nor how bytes are encoded: the core writes packets, and the sinks store
//! them.

// Allowed in the modules that follow forks and the end of the process, and that handle the signals of triggers.
#![deny(unsafe_code)]
// Code that only the agent and sessions in files use.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]

#[cfg_attr(not(target_os = "linux"), path = "agent/elsewhere.rs")]
mod agent;
mod budget;
mod catalog;
mod channel_room;
mod drain_thread;
mod event;
mod memory;
mod panic_hook;
mod process_bound;
mod rule_match;
mod session;
mod session_dirs;
mod state;
mod statistics;
pub mod testing;
#[cfg_attr(not(target_os = "linux"), path = "trigger/elsewhere.rs")]
mod trigger;

pub use agent::{Agent, AgentBuilder, AgentError};
pub use session::{Session, SessionBuilder, SessionError, SinkFailure, Status, Summary};
pub use state::{Dump, StateDump, state_dump};
pub use tracepoint_core::channel::Channel;
pub use tracepoint_core::clock::Clock;
/// The sinks for sessions, and the trait for your own sinks.
pub use tracepoint_sinks as sinks;
