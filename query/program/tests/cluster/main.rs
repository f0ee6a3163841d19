//! Queries on a scheduler and two executors, run as processes on the loopback address: equal answers, and the effects of dying processes.

#[path = "../../../../tests/support/skip.rs"]
mod skip;

mod equal_answers;
mod failures;
mod page;
mod s3;

use std::path::Path;
use std::process::Command;

use tracepoint_query_tests::processes::Cluster;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tracectl-query");

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    command
}

fn start(place: &Path, executors: usize, slots: usize) -> Cluster {
    Cluster::start(|| Command::new(PROGRAM), place, executors, slots)
}
