//! `tracectl-query`: writes traces into a store of Parquet files, and keeps it. `tracectl query` and `tracectl export --parquet` run it.
//!
//! It is a program of its own because what it is built from is large. Exit codes are those of `tracectl`.

mod export;
mod maintain;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Writes traces into a store of Parquet files, and keeps it
///
/// `tracectl query` runs this program. docs/parquet.md has the layout of a store, and shows how to query it by DuckDB.
#[derive(Debug, Parser)]
#[command(
    name = "tracectl-query",
    version,
    after_help = "\
Examples:
  tracectl query export /srv/traces /tmp/trace
  tracectl query compact /srv/traces
  tracectl query retain /srv/traces --days 30

Exit codes:
  0  success
  1  incomplete: the trace is damaged; the rest was written
  2  the command line is invalid
  3  failure: the trace cannot be read, or the store cannot be written"
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Export(export::Export),
    Compact(maintain::Compact),
    Retain(maintain::Retain),
}

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Success,
    Incomplete,
}

type VerbResult = Result<Outcome, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Export(verb) => verb.run(),
        Verb::Compact(verb) => verb.run(),
        Verb::Retain(verb) => verb.run(),
    };
    match result {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(1),
        Err(error) => {
            output::message("error", &error.to_string());
            ExitCode::from(3)
        }
    }
}
