//! `tracectl-query`: writes traces into a store of Parquet files, maintains the store, and queries it. `tracectl query` and
//! `tracectl export --parquet` run this program.
//!
//! It is a separate program because its dependencies are large. Its exit codes are the same as `tracectl`'s.

mod answer;
#[cfg_attr(not(feature = "cluster"), path = "no_cluster.rs")]
mod cluster;
mod export;
mod maintain;
mod output;
mod place;
mod select;
#[cfg(feature = "flight")]
mod serve;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Maximum time to wait for an interrupted query to end.
const END: Duration = Duration::from_secs(1);

/// Queries a store of traces, or a trace, by SQL; writes and maintains stores
///
/// A store is a directory of Parquet files. Each event is a table; its name must be in double quotes. `events` has the columns that all events share;
/// `account` and `losses` describe missing data. A trace has the same tables. `tracectl query` runs this program. docs/query.md describes the tables
/// and functions, and docs/parquet.md the layout of a store.
#[derive(Debug, Parser)]
#[command(
    name = "tracectl-query",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  tracectl query 'SELECT path, count(*), avg(nanos) FROM \"shop:answered\" GROUP BY path' /srv/traces
  tracectl query --csv \"SELECT * FROM latency('shop:asked', 'shop:answered', 'id') ORDER BY nanos DESC LIMIT 10\" /srv/traces
  tracectl query --json 'SELECT * FROM losses' /srv/traces
  tracectl query 'SELECT event, count(*) FROM events GROUP BY event' /tmp/trace
  tracectl query --tables /srv/traces
  tracectl query --serve 127.0.0.1:50060 /srv/traces
  tracectl query export /srv/traces /tmp/trace
  tracectl query compact /srv/traces
  tracectl query retain /srv/traces --days 30

Exit codes:
  0    success
  1    incomplete: the trace is damaged; the rest was written or read
  2    the command line is invalid
  3    failure: the query is not valid, the trace or the store cannot be read, or the store cannot be written
  130  interrupted"
)]
struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    select: select::Select,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Export(export::Export),
    Compact(maintain::Compact),
    Retain(maintain::Retain),
    #[cfg_attr(not(feature = "cluster"), command(hide = true))]
    Scheduler(cluster::Scheduler),
    #[cfg_attr(not(feature = "cluster"), command(hide = true))]
    Executor(cluster::Executor),
}

/// The outcome of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Success,
    Incomplete,
    Interrupted,
}

type VerbResult = Result<Outcome, Box<dyn std::error::Error>>;

#[cfg_attr(
    not(feature = "cluster"),
    expect(clippy::match_same_arms, reason = "the verbs of a cluster are then one type, which says what is missing")
)]
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.verb {
        Some(Verb::Export(verb)) => verb.run(),
        Some(Verb::Compact(verb)) => verb.run(),
        Some(Verb::Retain(verb)) => verb.run(),
        Some(Verb::Scheduler(verb)) => verb.run(),
        Some(Verb::Executor(verb)) => verb.run(),
        None => arguments.select.run(),
    };
    match result {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            output::message("error", &error.to_string());
            ExitCode::from(3)
        }
    }
}
