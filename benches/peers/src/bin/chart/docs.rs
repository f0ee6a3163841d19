//! The short form, for the project's documentation.

use crate::counts::Counts;
use crate::svg;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tracepoint_peers::report::{Report, Row};

const BEGIN: &str = "<!-- peers: begin; written by scripts/peers.sh --docs -->\n";
const END: &str = "<!-- peers: end -->";

/// Replaces the section in costs.md, and the chart.
pub(crate) fn put(docs: &Path, report: &Report, counts: &Counts) -> Result<()> {
    let path = docs.join("costs.md");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let marks = || format!("{} has no section between `{}` and `{END}`", path.display(), BEGIN.trim_end());
    let (before, rest) = text.split_once(BEGIN).with_context(marks)?;
    let (_, after) = rest.split_once(END).with_context(marks)?;
    fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", section(report, counts)))
        .with_context(|| format!("write {}", path.display()))?;
    let path = docs.join("costs.svg");
    fs::write(&path, svg::render(report)).with_context(|| format!("write {}", path.display()))
}

fn section(report: &Report, counts: &Counts) -> String {
    let mut text = format!("\n{}; {} rounds.\n", report.machine, report.rounds);
    for on in [false, true] {
        table(&mut text, report, counts, on).expect("a String takes everything");
    }
    text.push('\n');
    text
}

fn table(text: &mut String, report: &Report, counts: &Counts, on: bool) -> std::fmt::Result {
    let state = if on { "on" } else { "off" };
    writeln!(text, "\n| {state} | chain, ratio (95 %) | chain, ns | tight, ns | eight in a row, ns | instructions |")?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for row in report.rows.iter().filter(|row| row.on == on && row.kernel == "latency") {
        let added = |kernel: &str| {
            let same = |other: &&Row| other.on == on && other.kernel == kernel && other.variant == row.variant;
            report.rows.iter().find(same).map_or_else(|| "-".to_owned(), |row| format!("{:.2}", row.added_ns.median))
        };
        let instructions =
            counts.added(&row.variant, "tight").map_or_else(|| "-".to_owned(), |count| format!("{count:+.0}"));
        writeln!(
            text,
            "| `{}` | {:.3} ({:.3} to {:.3}) | {} | {} | {} | {instructions} |",
            row.variant,
            row.ratio.median,
            row.ratio.low,
            row.ratio.high,
            added("latency"),
            added("tight"),
            added("eight"),
        )?;
    }
    Ok(())
}
