//! The examples as their users run them.
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
