//! The tests of sessions that share a program. Each runs in its own process, because sessions see the events of the whole process.
#![allow(clippy::items_after_statements, reason = "a test begins with `own_process!`, its constants come behind")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../tests/support/describe.rs"]
mod describe;
#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;
#[path = "../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../tests/support/skip.rs"]
mod skip;

mod any_program;
mod bad_input;
mod changes;
mod channels;
mod clocks;
mod concurrent_starts;
mod contexts;
mod cut_off_rings;
mod discard;
mod drain_is_not_traced;
mod drop_in_panic;
mod failing_sinks;
mod field_extremes;
mod field_types;
mod filter_language;
mod filter_oracle;
mod filters;
mod flight;
mod flight_panic;
mod flight_refused;
mod flips;
mod fork;
mod full_disk;
mod golden_rings;
mod inside_a_probe;
mod killed;
mod limits;
mod many_processes;
mod many_threads;
mod new_threads;
mod no_ring;
mod one_event;
mod overflow;
mod overwrite;
mod ring_directories;
mod ring_files;
mod ring_memory_cap;
mod rings_by_need;
mod rotate;
mod runtime_markers;
mod same_name;
mod several_sinks;
mod snapshots;
mod spans;
mod start_and_stop;
mod state_dumps;
mod statistics;
mod test_sessions;
mod two_processes;
mod two_sessions;
mod wait;
mod wake;
