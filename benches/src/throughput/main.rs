//! The rate at which records leave the rings: `throughput [ROUNDS [DIR]]` prints two tables.
//!
//! *Snapshot*: a recovery of this running process, from its ring files into a trace, both in memory; compared with a plain copy of
//! the same files. *Drain*: whole packets out of a full ring in memory, to `/dev/null` and to files in DIR (the current directory
//! by default), compared with a loop that writes the same bytes, in pieces of the same size, in the same round.
#![forbid(unsafe_code)]

#[path = "../../../tests/support/describe.rs"]
mod describe;
mod drain;
mod snapshot;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const MIB: u32 = 1 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let rounds = arguments.next().map_or(Some(21), |rounds| rounds.to_str()?.parse().ok());
    let Some(rounds @ 1..) = rounds else {
        eprintln!("usage: throughput [ROUNDS [DIR]]");
        return ExitCode::from(2);
    };
    let directory = arguments.next().map_or_else(|| PathBuf::from("."), PathBuf::from);
    println!("{}; {rounds} rounds", tracepoint::runtime::platform());
    match snapshot::table(rounds).and_then(|()| drain::table(rounds, &directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("throughput: {error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The minimum and the median.
fn least_and_median(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort_unstable();
    [times[0], times[times.len() / 2]]
}

/// A record of the small workload.
const RECORD: usize = 24;

/// The number of events of the small workload that fill at least this number of bytes.
const fn events_in(bytes: u32) -> u32 {
    bytes / RECORD as u32
}

/// Fires the small event this number of times.
fn fire(events: u32) {
    for i in 0..events {
        tracepoint::trace!(tracepoint_benches::small(i.cast_signed(), 7, i.into()));
    }
}
