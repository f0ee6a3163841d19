//! What a traced process and a controller both do with a described session. Internal to [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! A session is a description (`tracepoint-session-spec`) in a run directory (`tracepoint-run-dir`); this crate is where the two meet:
//!
//! * [`store`] reads the descriptions that are there and changes them: under the lock, with a line in the log, and all agents are woken.
//!   [`owner`] tells whether the owner of a session lives.
//! * [`outputs`] makes sinks from their descriptions, each with a limit on the space that it uses; [`sink_features`] tells which kinds a program has.
//! * [`statistics`] lists and reads the files of a session's statistics.
//! * [`trigger`] has the life of a trigger that occurred: the messages of the notification socket, the state that all processes share, and the
//!   actions, which a listener does, or else whoever noticed.
//!
//! ```text
//!   session.toml ─▶ SessionStore::session ─▶ StoredSession::spec ─▶ outputs::make ─▶ Sink
//!                                                 │ StoredSession::change ─▶ session.toml, log, bells
//!   condition ─▶ FireRequest ─▶ trigger_report ───┴─▶ TriggerRunner ─▶ snapshots, start, stop, rotate
//! ```
//!
//! Who records, who drains and who waits for acknowledgements is not known here: those are `tracepoint-session`, inside a traced process, and
//! `tracepoint-controller`, outside.

#![forbid(unsafe_code)]

mod error;
pub mod outputs;
pub mod owner;
pub mod sink_features;
mod snapshot;
pub mod statistics;
pub mod store;
pub mod trigger;

pub use error::ControlError;
pub use snapshot::SnapshotSummary;
