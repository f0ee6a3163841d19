//! The load that a session can handle: `drained [ROUNDS [DIR [ROW]]]` prints rates, bursts and processor times, in one interleaved run. With ROW,
//! only the rows whose names contain it are measured.
//!
//! * *Flat out*: one thread records as fast as it can; the events per second of wall time that reach the trace in DIR (`/dev/shm` by
//!   default). For comparison, a loop that writes packets which another core has just filled, through a ring of the same size.
//! * *Steady*: events of one or two threads at a fixed rate, after an idle time; the number of lost events.
//! * *Burst*: events as fast as one thread can, after an idle time; the number of lost events.
//! * *Text*: the lines per second that a session writes for a thread that fires continuously, and the number of lost events at 1 M/s.
//! * *Processor*: the processor time per event at a low rate, recording and not recording.
#![forbid(unsafe_code)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

mod load;

use load::{Load, Outcome, Output, Seen, run};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tracepoint_benches::floor;

const HELP: &str = "\
usage: drained [ROUNDS [DIR [ROW]]]

  ROUNDS  how often each row is measured; the medians are printed (5)
  DIR     where the traces are written (/dev/shm)
  ROW     measure only the rows whose names contain this: plain loop, flat out, M/s, burst, text, processor
";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let rounds = arguments.next().map_or(Some(5), |rounds| rounds.to_str()?.parse().ok());
    let Some(rounds @ 1..) = rounds else {
        eprint!("{HELP}");
        return ExitCode::from(2);
    };
    let directory = arguments.next().map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let row = arguments.next().unwrap_or_default();
    println!("{}; {rounds} rounds", tracepoint::runtime::platform());
    match measure(rounds, &directory, &row.to_string_lossy()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drained: {error}");
            ExitCode::FAILURE
        }
    }
}

const QUIET: Duration = Duration::from_secs(2);
/// The name of the row without a session.
const FLOOR: &str = "plain loop: filled here, written there";
const SECOND: Duration = Duration::from_secs(1);

fn measure(rounds: usize, directory: &std::path::Path, only: &str) -> Outcome<()> {
    let output = Output::Ctf;
    let flat = |ring_mib| Load {
        output,
        ring_mib,
        threads: 1,
        rate: None,
        events: 40_000_000,
        quiet: Duration::from_millis(100),
    };
    let steady = |rate, threads| Load {
        output,
        ring_mib: 1,
        threads,
        rate: Some(rate / threads as u64),
        events: rate / threads as u64 * 2,
        quiet: QUIET,
    };
    let burst = |ring_mib, events| Load { output, ring_mib, threads: 1, rate: None, events, quiet: QUIET };
    let mut rows: Vec<(String, Load, Vec<Seen>)> = Vec::new();
    for ring in [1, 4] {
        rows.push((format!("flat out, rings of {ring} MiB"), flat(ring), Vec::new()));
    }
    for (rate, threads) in [(1, 1), (5, 1), (8, 1), (5, 2), (8, 2)] {
        rows.push((format!("{rate} M/s by {threads} thread(s)"), steady(rate * 1_000_000, threads), Vec::new()));
    }
    for (ring, events) in [(1, 40_000), (1, 80_000), (4, 400_000)] {
        rows.push((format!("burst of {events}, rings of {ring} MiB"), burst(ring, events), Vec::new()));
    }
    let text = |load| Load { output: Output::Text, ..load };
    rows.push(("text, flat out".to_owned(), text(Load { events: 100_000_000, ..flat(1) }), Vec::new()));
    rows.push(("text, 1 M/s by 1 thread".to_owned(), text(steady(1_000_000, 1)), Vec::new()));
    for rate in [10_000, 100_000, 1_000_000] {
        rows.push((format!("processor at {rate}/s"), steady(rate, 1), Vec::new()));
    }
    rows.retain(|(name, ..)| name.contains(only));
    let mut floors = Vec::new();
    for _ in 0..rounds {
        if FLOOR.contains(only) || only == "flat out" {
            floors.push(floor::kept_per_second(directory, SECOND)?);
        }
        for (_, load, seen) in &mut rows {
            seen.push(run(load, directory)?);
        }
    }
    println!(
        "{:<34} {:>10} {:>10} {:>9} {:>9} {:>7} {:>7}",
        "medians", "kept M/s", "lost", "of", "ns CPU", "rounds", "woken"
    );
    if !floors.is_empty() {
        println!("{FLOOR:<34} {:>10.1}", median(floors.into_iter()) / 1e6);
    }
    for (name, _, seen) in &rows {
        let of = |what: fn(&Seen) -> f64| median(seen.iter().map(what));
        println!(
            "{name:<34} {:>10.2} {:>10.0} {:>9.0} {:>9.1} {:>7.0} {:>7.0}",
            of(|seen| seen.kept as f64 / seen.wall.as_secs_f64()) / 1e6,
            of(|seen| seen.lost as f64),
            of(|seen| (seen.kept + seen.lost) as f64),
            of(|seen| seen.processor.as_nanos() as f64 / (seen.kept + seen.lost) as f64),
            of(|seen| seen.rounds as f64),
            of(|seen| seen.woken as f64),
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
