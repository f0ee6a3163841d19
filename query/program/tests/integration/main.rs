//! Tests of the program `tracectl-query`: DuckDB can read its files, and they survive a kill.

#[path = "../../../../tests/support/seed.rs"]
mod seed;
#[path = "../../../../tests/support/skip.rs"]
mod skip;

mod duckdb;
mod killed;
mod recorded;
mod s3;
mod select;
mod traces;
mod verbs;

use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracectl-query")).args(arguments).output().expect("the program runs")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
