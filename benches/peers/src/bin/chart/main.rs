//! Turns the JSON of the bins `paired` and `systems`, and instruction counts, into tables and a chart.

mod counts;
mod docs;
mod svg;
mod systems;
mod table;

use anyhow::{Context, Result};
use clap::Parser;
use counts::Counts;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};
use tracepoint_peers::report::Report;

/// Writes peers.md and peers.svg from the results of the bin `paired` and of callgrind, and systems.md from those of the bin `systems`.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  paired --json > run.json && chart run.json --out results
  chart run.json --counts counts.tsv --out results     with the instruction counts that scripts/peers.sh makes
  systems --json > systems.json && chart --systems systems.json --out results")]
struct Options {
    /// The output of `paired --json`
    #[arg(required_unless_present = "systems")]
    run: Option<PathBuf>,
    /// The output of `systems --json`
    #[arg(long, value_name = "FILE")]
    systems: Option<PathBuf>,
    /// Instruction counts: lines of variant, kernel, instructions per event, with tabs in between
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// The directory to write to
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    out: PathBuf,
    /// Also update what costs.md, in this directory, says of this kind of processor, and the chart of it
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    if let Some(path) = &options.run {
        let report: Report = results(path)?;
        let counts =
            options.counts.as_deref().map_or_else(|| Ok(Counts::default()), |path| Counts::read(&read(path)?))?;
        options.write("peers.md", &table::render(&report, &counts))?;
        options.write("peers.svg", &svg::render(&report))?;
        options.docs.as_ref().map_or(Ok(()), |docs| docs::put(docs, &report, &counts))?;
    }
    if let Some(path) = &options.systems {
        let report: systems::Report = results(path)?;
        let section = systems::render(&report);
        options.write("systems.md", &section)?;
        options.docs.as_ref().map_or(Ok(()), |docs| docs::put_part(docs, "systems", &report.machine, &section))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

fn results<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_str(&read(path)?).with_context(|| format!("{} is no run", path.display()))
}

impl Options {
    fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.out.join(name);
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        println!("{}", path.display());
        Ok(())
    }
}
