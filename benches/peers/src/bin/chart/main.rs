//! Turns the JSON of the bin `paired`, and instruction counts, into a table and a chart.

mod counts;
mod docs;
mod svg;
mod table;

use anyhow::{Context, Result};
use clap::Parser;
use counts::Counts;
use std::fs;
use std::path::PathBuf;
use tracepoint_peers::report::Report;

/// Writes peers.md and peers.svg from the results of the bin `paired` and of callgrind.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  paired --json > run.json && chart run.json --out results
  chart run.json --counts counts.tsv --out results     with the instruction counts that scripts/peers.sh makes")]
struct Options {
    /// The output of `paired --json`
    run: PathBuf,
    /// Instruction counts: lines of variant, kernel, instructions per event, with tabs in between
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// The directory to write to
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    out: PathBuf,
    /// Also update the section between the marks of costs.md, and costs.svg, in this directory
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let text = fs::read_to_string(&options.run).with_context(|| format!("read {}", options.run.display()))?;
    let report: Report = serde_json::from_str(&text).with_context(|| format!("{} is no run", options.run.display()))?;
    let counts = match &options.counts {
        Some(path) => Counts::read(&fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?)?,
        None => Counts::default(),
    };
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    for (name, content) in [("peers.md", table::render(&report, &counts)), ("peers.svg", svg::render(&report))] {
        let path = options.out.join(name);
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        println!("{}", path.display());
    }
    if let Some(docs) = &options.docs {
        docs::put(docs, &report, &counts)?;
    }
    Ok(())
}
