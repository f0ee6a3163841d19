//! The Markdown table.

use crate::counts::Counts;
use std::fmt::Write;
use tracepoint_peers::report::{Report, Row};
use tracepoint_peers::variant::Mode;

/// Renders a run.
pub(crate) fn render(report: &Report, counts: &Counts) -> String {
    let mut text = String::new();
    write(&mut text, report, counts).expect("a String accepts all writes");
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
    for mode in Mode::ALL {
        section(text, report, counts, mode)?;
    }
    only_recorded(text, report)?;
    if report.checks.iter().any(|check| !check.proof.holds) {
        writeln!(text, "\n## Failed checks\n\nThe figures of these variants are wrong.\n")?;
    }
    for check in report.checks.iter().filter(|check| !check.proof.holds) {
        writeln!(text, "* `{}`: {}", check.variant, check.proof.found)?;
    }
    Ok(())
}

fn section(text: &mut String, report: &Report, counts: &Counts, mode: Mode) -> std::fmt::Result {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.mode == mode).collect();
    if rows.is_empty() && report.unusable.iter().all(|absent| absent.mode != mode) {
        return Ok(());
    }
    writeln!(text, "\n## {}\n", title(mode))?;
    writeln!(text, "| variant | what happens to an event | proved by | bytes | lost |\n|---|---|---|---|---|")?;
    let mut seen = Vec::new();
    for row in &rows {
        if seen.contains(&&row.variant) {
            continue;
        }
        seen.push(&row.variant);
        let check = report.checks.iter().find(|check| check.variant == row.variant);
        let found = check.map_or("", |check| &check.proof.found);
        let bytes = check.and_then(|check| check.proof.bytes).map_or_else(|| "-".into(), |bytes| format!("{bytes:.1}"));
        let lost =
            check.and_then(|check| Some(format!("{} of {}", check.lost?, check.events))).unwrap_or_else(|| "-".into());
        writeln!(text, "| `{}` | {} | {found} | {bytes} | {lost} |", row.variant, row.does)?;
    }
    for absent in report.unusable.iter().filter(|absent| absent.mode == mode) {
        writeln!(text, "| `{}` | {} | **not measured**: {} | - | - |", absent.variant, absent.does, absent.reason)?;
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
        let (floor_head, floor_rule) =
            if mode == Mode::Recorded { (" over the floor (95 %) |", "---|") } else { ("", "") };
        writeln!(
            text,
            "\n### {kernel}\n\n| variant | ratio | 95 % | added ns | min ns |{floor_head}{head}\n\
             |---|---|---|---|---|{floor_rule}{rule}"
        )?;
        for row in rows.iter().filter(|row| row.kernel == kernel) {
            writeln!(
                text,
                "| `{}` | {} | {} to {} | {} | {} |{}{}",
                row.variant,
                short(row.ratio.median),
                short(row.ratio.low),
                short(row.ratio.high),
                short(row.added_ns.median),
                short(row.ns_min),
                floor(row),
                counted(row)
            )?;
        }
    }
    Ok(())
}

const fn title(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "Switched off",
        Mode::On => "Switched on",
        Mode::Recorded => "Recorded",
    }
}

/// The additional column of rows that record.
fn floor(row: &Row) -> String {
    match (row.mode, row.over_floor) {
        (Mode::Recorded, Some(over)) => format!(" {:.3} ({:.3} to {:.3}) |", over.median, over.low, over.high),
        (Mode::Recorded, None) => " - |".into(),
        _ => String::new(),
    }
}

/// The tables of variants that record: on two processors at once, and without a pause.
pub(crate) fn only_recorded(text: &mut String, report: &Report) -> std::fmt::Result {
    if !report.two.is_empty() {
        writeln!(text, "\n| tight, two at once | one alone, ns | each of two, ns | ratio (95 %) |\n|---|---|---|---|")?;
    }
    for two in &report.two {
        let (alone, beside, ratio) = (two.alone_ns.median, two.beside_ns.median, two.ratio);
        writeln!(
            text,
            "| `{}` | {alone:.2} | {beside:.2} | {:.3} ({:.3} to {:.3}) |",
            two.variant, ratio.median, ratio.low, ratio.high
        )?;
    }
    if !report.sustained.is_empty() {
        writeln!(text, "\n| tight, without a pause | ns | events | lost | % |\n|---|---|---|---|---|")?;
    }
    for sustained in &report.sustained {
        let percent = 100.0 * sustained.lost as f64 / sustained.events as f64;
        writeln!(
            text,
            "| `{}` | {:.1} | {} | {} | {percent:.1} |",
            sustained.variant, sustained.ns, sustained.events, sustained.lost
        )?;
    }
    Ok(())
}

/// As many digits after the point as are significant.
fn short(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.3}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
