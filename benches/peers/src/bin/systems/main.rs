//! Compares recording systems: a traced program, and the processes that drain, write and control.
//!
//! The bin `paired` measures sites: the cost of an event for the thread that fires it. This one measures whole systems: the highest rate
//! without loss, bursts, processor time on both sides, and the cost of an idle program. Every measurement starts a traced
//! program (this program with `--subject`), records it with a system in its default configuration, and stops. The systems take turns in each round.

mod figures;
mod load;
mod plan;
mod processes;
mod program;
mod subject;
mod system;
mod trial;

use anyhow::{Context, Result};
use clap::Parser;
use plan::Plan;
use std::env;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::System;
use tracepoint_peers::systems::Report;

/// Measures recording systems next to each other, each with its defaults.
///
/// Figures, medians over the rounds: `steady-1` and `steady-2`, the highest rate of one and two threads that loses nothing, in events
/// per second, beginning at once after a pause; `flat`, events per second of wall time that are kept of a thread that fires as fast
/// as it can, and `flat-lost`, the part in percent that is lost; `burst`, the largest burst of a thread after a pause of which
/// nothing is lost; `program-N` and `consumer-N`, nanoseconds for an event at N events per second, inside events and in threads of
/// the traced program that do not fire, and in other processes; `wakes-program` and `wakes-consumer`, wake-ups per second while
/// nothing happens; `rss`, `pss`, `consumer-pss` and `shared`, KiB that an idle program, its recorder and all shared memory grow by.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  systems                            everything, about five minutes
  systems --quick --json             a test of the harness
  systems --system session --figure burst --pause 60000 --rounds 1
  systems --json > systems.json      for the bin `chart`")]
struct Options {
    /// One round of short loads: a test of the harness, not a measurement
    #[arg(long)]
    quick: bool,
    /// Number of rounds [default: 3, with --quick 1]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// How long the program is idle before each load, in milliseconds [default: 1000, with --quick 100]
    #[arg(long, value_name = "MS")]
    pause: Option<u64>,
    /// Only these systems; repeat it for more
    #[arg(long, value_name = "SYSTEM")]
    system: Vec<System>,
    /// Only these figures; repeat it for more
    #[arg(long, value_name = "FIGURE", value_parser = ["steady", "flat", "burst", "cost"])]
    figure: Vec<String>,
    /// This library's command line [default: `tracectl` of the workspace, as scripts/peers.sh builds it]
    #[arg(long, value_name = "FILE")]
    tracectl: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Be the traced program of a system; loads come from the standard input
    #[arg(long, hide = true)]
    subject: Option<System>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(system) = options.subject {
        return subject::run(system);
    }
    let mut plan = if options.quick { Plan::quick() } else { Plan::whole() };
    plan.rounds = options.rounds.unwrap_or(plan.rounds).max(1);
    plan.pause = options.pause.map_or(plan.pause, Duration::from_millis);
    let tracectl = match options.tracectl {
        Some(path) => path,
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/tracectl"),
    };
    let tracectl = tracectl
        .canonicalize()
        .with_context(|| format!("{}: build it with `cargo build --release -p tracectl`", tracectl.display()))?;
    let report = figures::measure(&plan, &tracectl, &options.system, &options.figure)?;
    if options.json {
        serde_json::to_writer_pretty(stdout(), &report)?;
        println!();
    } else {
        print(&report);
    }
    Ok(())
}

fn print(report: &Report) {
    println!("{}; {} rounds, {} ms idle before each load", report.machine, report.rounds, report.pause_ms);
    println!("  {:<20} {:<10} {:>14} {:>31}", "figure", "system", "median", "95 %");
    for figure in &report.figures {
        let value = figure.value;
        println!(
            "  {:<20} {:<10} {:>14.1} {:>15.1}-{:<15.1}",
            figure.what, figure.system, value.median, value.low, value.high
        );
    }
    for absent in &report.absent {
        println!("{}: not measured: {}", absent.system, absent.reason);
    }
}
