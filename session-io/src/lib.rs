//! Operations on described sessions that both a traced process and a controller need. Internal to
//! [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! A session is a description (`tracepoint-session-spec`) in a run directory (`tracepoint-run-dir`); this crate combines the two:
//!
//! * [`store`] reads the existing descriptions and changes them: under the lock, with a line in the log, and waking all agents. [`owner`]
//!   checks whether the owner of a session is alive.
//! * [`outputs`] creates sinks from their descriptions, each with a limit on its space; [`sink_features`] lists the kinds that a program
//!   supports.
//! * [`statistics`] lists and reads the files of a session's statistics.
//! * [`trigger`] handles triggers that occurred: the messages of the notification socket, the state that all processes share, and the
//!   actions, performed by a listener or, without one, by the process that detected the occurrence.
//!
//! ```text
//!   session.toml ─▶ SessionStore::session ─▶ StoredSession::spec ─▶ outputs::make ─▶ Sink
//!                                                 │ StoredSession::change ─▶ session.toml, log, bells
//!   condition ─▶ FireRequest ─▶ trigger_report ───┴─▶ TriggerRunner ─▶ snapshots, start, stop, rotate
//! ```
//!
//! This crate does not record, drain, or wait for acknowledgements: `tracepoint-session` does so inside a traced process, and
//! `tracepoint-controller` outside of it.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod error;
pub mod outputs;
#[cfg(target_os = "linux")]
pub mod owner;
pub mod sink_features;
mod snapshot;
pub mod statistics;
#[cfg(target_os = "linux")]
pub mod store;
#[cfg(target_os = "linux")]
pub mod trigger;

#[cfg(target_os = "linux")]
pub use error::ControlError;
pub use snapshot::SnapshotSummary;
