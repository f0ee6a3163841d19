//! The Markdown table.

use crate::counts::Counts;
use std::fmt::Write;
use tracepoint_peers::report::{Report, Row};

/// Renders a run.
pub(crate) fn render(report: &Report, counts: &Counts) -> String {
    let mut text = String::new();
    write(&mut text, report, counts).expect("a String takes everything");
    text
}

fn write(text: &mut String, report: &Report, counts: &Counts) -> std::fmt::Result {
    writeln!(text, "# What a tracepoint costs next to its peers\n\n{}.", report.machine)?;
    match report.pinned {
        Some(cpu) => write!(text, "Pinned to processor {cpu}, ")?,
        None => write!(text, "Not pinned, ")?,
    }
    writeln!(
        text,
        "{} rounds. A ratio is the median over the rounds of the time with an event by the time without, with its 95 % interval; \
         *added* is the difference for one event, *min* the fastest round with the event's share of the loop.",
        report.rounds
    )?;
    for on in [false, true] {
        section(text, report, counts, on)?;
    }
    if report.checks.iter().any(|check| !check.holds) {
        writeln!(text, "\n## Not to be believed\n")?;
    }
    for check in report.checks.iter().filter(|check| !check.holds) {
        writeln!(text, "* `{}`: {}", check.variant, check.found)?;
    }
    Ok(())
}

fn section(text: &mut String, report: &Report, counts: &Counts, on: bool) -> std::fmt::Result {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.on == on).collect();
    if rows.is_empty() && report.unusable.iter().all(|absent| absent.on != on) {
        return Ok(());
    }
    writeln!(text, "\n## {}\n", if on { "Switched on" } else { "Switched off" })?;
    writeln!(text, "| variant | what happens to an event | proved by | lost |\n|---|---|---|---|")?;
    let mut seen = Vec::new();
    for row in &rows {
        if seen.contains(&&row.variant) {
            continue;
        }
        seen.push(&row.variant);
        let check = report.checks.iter().find(|check| check.variant == row.variant);
        let found = check.map_or("", |check| &check.found);
        let lost =
            check.and_then(|check| Some(format!("{} of {}", check.lost?, check.events))).unwrap_or_else(|| "-".into());
        writeln!(text, "| `{}` | {} | {found} | {lost} |", row.variant, row.does)?;
    }
    for absent in report.unusable.iter().filter(|absent| absent.on == on) {
        writeln!(text, "| `{}` | {} | **not measured**: {} | - |", absent.variant, absent.does, absent.reason)?;
    }
    let mut kernels: Vec<&str> = rows.iter().map(|row| row.kernel.as_str()).collect();
    let mut seen = Vec::new();
    kernels.retain(|kernel| {
        !seen.contains(kernel) && {
            seen.push(kernel);
            true
        }
    });
    for kernel in kernels {
        let counted = |row: &Row| match counts.added(&row.variant, kernel) {
            Some(instructions) => format!(" {instructions:+.1} |"),
            None if counts.is_empty() => String::new(),
            None => " - |".into(),
        };
        let (head, rule) = if counts.is_empty() { ("", "") } else { (" instructions |", "---|") };
        writeln!(
            text,
            "\n### {kernel}\n\n| variant | ratio | 95 % | added ns | min ns |{head}\n|---|---|---|---|---|{rule}"
        )?;
        for row in rows.iter().filter(|row| row.kernel == kernel) {
            writeln!(
                text,
                "| `{}` | {} | {} to {} | {} | {} |{}",
                row.variant,
                short(row.ratio.median),
                short(row.ratio.low),
                short(row.ratio.high),
                short(row.added_ns.median),
                short(row.ns_min),
                counted(row)
            )?;
        }
    }
    Ok(())
}

/// Three digits after the point where they say something.
fn short(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.3}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
