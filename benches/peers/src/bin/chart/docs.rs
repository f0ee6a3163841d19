//! The short tables and the chart for the project's documentation.

use crate::counts::Counts;
use crate::{svg, table};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tracepoint_peers::report::Report;
use tracepoint_peers::variant::Mode;

/// Replaces the section of sites in costs.md, and the chart.
pub(crate) fn put(docs: &Path, report: &Report, counts: &Counts) -> Result<()> {
    put_section(docs, "peers", &section(report, counts))?;
    let path = docs.join("costs.svg");
    fs::write(&path, svg::render(report)).with_context(|| format!("write {}", path.display()))
}

/// Replaces the section in costs.md between the marks with this name.
pub(crate) fn put_section(docs: &Path, name: &str, section: &str) -> Result<()> {
    let begin = format!("<!-- {name}: begin; written by scripts/peers.sh --docs -->\n");
    let end = format!("<!-- {name}: end -->");
    let path = docs.join("costs.md");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let marks = || format!("{} has no section between `{}` and `{end}`", path.display(), begin.trim_end());
    let (before, rest) = text.split_once(&begin).with_context(marks)?;
    let (_, after) = rest.split_once(&end).with_context(marks)?;
    fs::write(&path, format!("{before}{begin}{section}{end}{after}"))
        .with_context(|| format!("write {}", path.display()))
}

fn section(report: &Report, counts: &Counts) -> String {
    let mut text = format!("\n{}; {} rounds.\n", report.machine, report.rounds);
    for mode in [Mode::Off, Mode::On] {
        sites(&mut text, report, counts, mode).expect("a String accepts all writes");
    }
    recorded(&mut text, report, counts).expect("a String accepts all writes");
    table::only_recorded(&mut text, report).expect("a String accepts all writes");
    absent(&mut text, report).expect("a String accepts all writes");
    text.push('\n');
    text
}

/// The nanoseconds that an event adds to a kernel.
fn added(report: &Report, variant: &str, kernel: &str) -> String {
    let row = report.rows.iter().find(|row| row.kernel == kernel && row.variant == variant);
    row.map_or_else(|| "-".to_owned(), |row| format!("{:.2}", row.added_ns.median))
}

/// The instructions that an event adds to the tight kernel.
fn instructions(counts: &Counts, variant: &str) -> String {
    counts.added(variant, "tight").map_or_else(|| "-".to_owned(), |count| format!("{count:+.0}"))
}

fn sites(text: &mut String, report: &Report, counts: &Counts, mode: Mode) -> std::fmt::Result {
    let state = mode.name();
    writeln!(text, "\n| {state} | chain, ratio (95 %) | chain, ns | tight, ns | eight in a row, ns | instructions |")?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for row in report.rows.iter().filter(|row| row.mode == mode && row.kernel == "latency") {
        let added = |kernel| added(report, &row.variant, kernel);
        writeln!(
            text,
            "| `{}` | {:.3} ({:.3} to {:.3}) | {} | {} | {} | {} |",
            row.variant,
            row.ratio.median,
            row.ratio.low,
            row.ratio.high,
            added("latency"),
            added("tight"),
            added("eight"),
            instructions(counts, &row.variant),
        )?;
    }
    Ok(())
}

fn recorded(text: &mut String, report: &Report, counts: &Counts) -> std::fmt::Result {
    writeln!(
        text,
        "\n| recorded | tight, ns | over the floor (95 %) | isolated, ns | over the floor (95 %) | bytes | instructions |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|")?;
    for row in report.rows.iter().filter(|row| row.mode == Mode::Recorded && row.kernel == "tight") {
        let variant = &row.variant;
        let over_floor = |kernel: &str| {
            let row = report.rows.iter().find(|row| row.kernel == kernel && row.variant == *variant);
            row.and_then(|row| row.over_floor).map_or_else(
                || "-".to_owned(),
                |over| format!("{:.3} ({:.3} to {:.3})", over.median, over.low, over.high),
            )
        };
        let check = report.checks.iter().find(|check| check.variant == *variant);
        let bytes = check.and_then(|check| check.proof.bytes).map_or_else(|| "-".into(), |bytes| format!("{bytes:.1}"));
        writeln!(
            text,
            "| `{variant}` | {} | {} | {} | {} | {bytes} | {} |",
            added(report, variant, "tight"),
            over_floor("tight"),
            added(report, variant, "tight-isolated"),
            over_floor("tight-isolated"),
            instructions(counts, variant),
        )?;
    }
    Ok(())
}

/// The variants that were not measured, and why.
fn absent(text: &mut String, report: &Report) -> std::fmt::Result {
    if !report.unusable.is_empty() {
        writeln!(text)?;
    }
    for absent in &report.unusable {
        writeln!(text, "* `{}` was not measured: {}", absent.variant, absent.reason)?;
    }
    Ok(())
}
