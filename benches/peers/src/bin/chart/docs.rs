//! The short tables and the chart for the project's documentation.

use crate::counts::Counts;
use crate::{svg, table};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tracepoint_peers::machine::Machine;
use tracepoint_peers::report::Report;
use tracepoint_peers::variant::Mode;

/// Replaces this processor's part of the section of sites in costs.md, and its chart.
pub(crate) fn put(docs: &Path, report: &Report, counts: &Counts) -> Result<()> {
    let chart = format!("costs-{}.svg", report.machine.id());
    put_part(docs, "peers", &report.machine, &section(report, counts, &chart))?;
    let path = docs.join(chart);
    fs::write(&path, svg::render(report)).with_context(|| format!("write {}", path.display()))
}

/// Replaces the part of a section in costs.md that is about this kind of processor, or adds one behind those of other processors. A section stands
/// between marks with its name; each part has a heading with a processor.
pub(crate) fn put_part(docs: &Path, section: &str, machine: &Machine, text: &str) -> Result<()> {
    let begin = format!("<!-- {section}: begin; written by scripts/peers.sh --docs -->\n");
    let end = format!("<!-- {section}: end -->");
    let path = docs.join("costs.md");
    let page = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let marks = || format!("{} has no section between `{}` and `{end}`", path.display(), begin.trim_end());
    let (before, rest) = page.split_once(&begin).with_context(marks)?;
    let (parts, after) = rest.split_once(&end).with_context(marks)?;
    let parts = with_part(parts, &format!("{PART}{}\n", machine.processor()), text);
    fs::write(&path, format!("{before}{begin}{parts}{end}{after}")).with_context(|| format!("write {}", path.display()))
}

/// The beginning of a part's heading.
const PART: &str = "### ";

/// `parts` with the text below this heading replaced, or added at the end.
fn with_part(parts: &str, heading: &str, text: &str) -> String {
    let (before, after) = parts.split_once(heading).map_or((parts, ""), |(before, rest)| {
        let next = rest.find(&format!("\n{PART}")).map_or("", |next| &rest[next + 1..]);
        (before, next)
    });
    let between = if before.is_empty() { "\n" } else { "" };
    format!("{before}{between}{heading}{text}{after}")
}

fn section(report: &Report, counts: &Counts, chart: &str) -> String {
    let (machine, rounds) = (&report.machine, report.rounds);
    let mut text = format!(
        "\n{machine}; {rounds} rounds.\n\n![Nanoseconds that an event adds to a loop, for each tracer, on {}]({chart})\n",
        machine.processor()
    );
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
        "\n| recorded | tight, over the floor (95 %) | isolated, over the floor (95 %) | tight, ns | isolated, ns | bytes | instructions |"
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
            over_floor("tight"),
            over_floor("tight-isolated"),
            added(report, variant, "tight"),
            added(report, variant, "tight-isolated"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_replaces_that_of_the_same_processor_alone() {
        let one = with_part("", "### A\n", "\nfirst\n\n");
        let two = with_part(&one, "### B\n", "\nsecond\n\n");
        assert_eq!(two, "\n### A\n\nfirst\n\n### B\n\nsecond\n\n");
        let again = with_part(&two, "### A\n", "\nthird\n\n");
        assert_eq!(again, "\n### A\n\nthird\n\n### B\n\nsecond\n\n");
        assert_eq!(with_part(&again, "### B\n", "\nfourth\n\n"), "\n### A\n\nthird\n\n### B\n\nfourth\n\n");
    }
}
