//! `tracectl query`: runs `tracectl-query`, a separate program because of its large dependencies.
//!
//! It is looked up as cargo looks up subcommands: next to this program, then in `PATH`.

use crate::failure::{Failure, Outcome, VerbResult};
use clap::Args;
use std::env;
use std::env::consts::EXE_EXTENSION;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// The name of the program, without the extension of executables that Windows has.
const PROGRAM: &str = "tracectl-query";

/// Queries traces by SQL: runs `tracectl-query`
///
/// It also writes traces into a store and maintains the store. This is a separate program, installed next to this one or in PATH. `tracectl query
/// help` shows its options and verbs, docs/query.md the tables and functions, and docs/parquet.md the layout of a store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl query 'SELECT path, count(*) FROM \"shop:answered\" GROUP BY path' /srv/traces
  tracectl query --tables /srv/traces
  tracectl query export /srv/traces /tmp/trace
  tracectl query compact /srv/traces
  tracectl query retain /srv/traces --days 30")]
pub(crate) struct Query {
    /// The verb, and its arguments
    #[arg(value_name = "ARGUMENT", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Query {
    pub(crate) fn run(&self) -> VerbResult {
        run(&self.arguments)
    }
}

/// Runs the program, and ends with its status.
pub(crate) fn run(arguments: &[OsString]) -> VerbResult {
    let beside = env::current_exe()
        .ok()
        .map(|own| own.with_file_name(PROGRAM).with_extension(EXE_EXTENSION))
        .filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from(PROGRAM));
    let status = Command::new(program).args(arguments).status().map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "it is not installed".to_owned(),
            _ => error.to_string(),
        };
        Failure::Refused(format!(
            "cannot run {PROGRAM}: {reason}; `cargo install --path query/program` in the source of tracectl installs it"
        ))
    })?;
    match status.code().map(u8::try_from) {
        Some(Ok(code)) => Ok(Outcome::of_code(code)),
        _ => Err(Failure::Refused(format!("{PROGRAM} was killed ({status})"))),
    }
}
