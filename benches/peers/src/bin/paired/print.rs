//! Prints a run as text.

use std::collections::HashMap;
use tracepoint_peers::report::{Report, Row};
use tracepoint_peers::variant::Mode;

/// Prints a run.
pub(crate) fn print(report: &Report) {
    println!("{}", report.machine);
    match report.pinned {
        Some(cpu) => println!("pinned to processor {cpu}; {} rounds", report.rounds),
        None => println!("not pinned; {} rounds", report.rounds),
    }
    let mut kernels: Vec<(&str, Mode, Vec<&Row>)> = Vec::new();
    for row in &report.rows {
        match kernels.last_mut() {
            Some((kernel, mode, rows)) if *kernel == row.kernel && *mode == row.mode => rows.push(row),
            _ => kernels.push((&row.kernel, row.mode, vec![row])),
        }
    }
    let checks: HashMap<_, _> = report.checks.iter().map(|check| (&check.variant, check.proof.holds)).collect();
    for (kernel, mode, rows) in kernels {
        println!("\n{kernel}, {}", mode.name());
        println!(
            "  {:<25} {:>8} {:>19} {:>10} {:>8} {:>8} {:>24}",
            "variant",
            "ratio",
            "95 %",
            "added ns",
            "min ns",
            "median",
            if mode == Mode::Recorded { "over the floor" } else { "" }
        );
        for row in rows {
            let doubt = if checks.get(&row.variant) == Some(&false) { "  DOES NOT HIT" } else { "" };
            let floor = row
                .over_floor
                .map_or_else(String::new, |floor| format!("{:.3} {:.3}-{:.3}", floor.median, floor.low, floor.high));
            println!(
                "  {:<25} {:>8.3} {:>9.3}-{:<9.3} {:>10.3} {:>8.3} {:>8.3} {floor:>24}{doubt}",
                row.variant,
                row.ratio.median,
                row.ratio.low,
                row.ratio.high,
                row.added_ns.median,
                row.ns_min,
                row.ns_median,
            );
        }
    }
    extra(report);
    println!();
    for check in report.checks.iter().filter(|check| check.lost.is_some_and(|lost| lost > 0)) {
        println!("{}: lost {} of {} events", check.variant, check.lost.unwrap_or_default(), check.events);
    }
    for absent in &report.unusable {
        println!("{}: not usable: {}", absent.variant, absent.reason);
    }
}

/// The tables of variants that record.
fn extra(report: &Report) {
    if !report.two.is_empty() {
        println!("\ntight, on two processors at once");
        println!("  {:<25} {:>9} {:>9} {:>8} {:>19}", "variant", "alone ns", "beside ns", "ratio", "95 %");
    }
    for two in &report.two {
        println!(
            "  {:<25} {:>9.3} {:>9.3} {:>8.3} {:>9.3}-{:<9.3}",
            two.variant, two.alone_ns.median, two.beside_ns.median, two.ratio.median, two.ratio.low, two.ratio.high
        );
    }
    if !report.sustained.is_empty() {
        println!(
            "\ntight, without a pause\n  {:<25} {:>9} {:>12} {:>12} {:>7}",
            "variant", "ns", "events", "lost", "%"
        );
    }
    for sustained in &report.sustained {
        let percent = 100.0 * sustained.lost as f64 / sustained.events as f64;
        println!(
            "  {:<25} {:>9.1} {:>12} {:>12} {percent:>7.2}",
            sustained.variant, sustained.ns, sustained.events, sustained.lost
        );
    }
    let bytes: Vec<_> = report.checks.iter().filter_map(|check| Some((&check.variant, check.proof.bytes?))).collect();
    if !bytes.is_empty() {
        println!("\nbytes for an event");
    }
    for (variant, bytes) in bytes {
        println!("  {variant:<25} {bytes:>9.1}");
    }
}
