//! Runs the examples as users do.
#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;

mod connections;
mod crash;
mod flight;
mod http;
mod probes;
mod sched;
mod tokio;
mod treehash;
mod xkernel;
