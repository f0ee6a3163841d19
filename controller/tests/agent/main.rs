//! Processes with an agent, controlled from this one: the contents of the run directory, the effects of sessions, access rights, and the
//! remains after a kill of any process.
//!
//! `TRACEPOINT_CHAOS='PROCESSES SESSIONS STEPS'` sets the size of the random part; the default is for CI.

#[path = "../../../session/tests/common/mod.rs"]
mod common;
#[path = "../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../tests/support/skip.rs"]
mod skip;

mod blocked;
mod budget;
mod channels;
mod chaos;
mod closed_descriptors;
mod environment;
mod failures;
mod filters;
mod fork_cost;
mod forks;
mod full_run_dir;
mod listing;
mod many_sessions;
mod no_files;
mod no_memory;
mod participants;
mod rights;
mod rings;
mod rotation;
mod scheduling;
mod sessions;
mod sink_kinds;
mod state;
mod statistics;
mod traced;
mod triggers;
mod user_isolation;
