//! Processes with an agent, controlled from this one: what the run directory shows, what sessions do, and who is not trusted.
//!
//! `TRACEPOINT_CHAOS='PROCESSES SESSIONS ROUNDS'` says how much the random part does; the default is for CI.

#[path = "../common/mod.rs"]
mod common;

mod listing;
mod sessions;
mod traced;
