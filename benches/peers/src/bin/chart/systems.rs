//! The table of recording systems: this library's and its peers.

use std::fmt::Write;
pub(crate) use tracepoint_peers::systems::Report;

/// A row: its label, its figures, and the number of its units per unit of the peers.
struct Row {
    label: &'static str,
    /// Several figures are added, and shown separately.
    figures: &'static [&'static str],
    unit: f64,
    digits: usize,
}

const fn row(label: &'static str, figures: &'static [&'static str], unit: f64, digits: usize) -> Row {
    Row { label, figures, unit, digits }
}

const MILLION: f64 = 1e6;
const MIB: f64 = 1024.0;

const ROWS: &[Row] = &[
    row("lossless rate of 1 thread, M/s", &["steady-1"], MILLION, 2),
    row("lossless rate of 2 threads, M/s", &["steady-2"], MILLION, 2),
    row("flat out, kept, M/s", &["flat"], MILLION, 1),
    row("flat out, lost, %", &["flat-lost"], 1.0, 1),
    row("largest burst without a loss", &["burst"], 1.0, 0),
    row("ns of processor per event, 10,000/s", &["program-10000", "consumer-10000"], 1.0, 0),
    row("ns of processor per event, 100,000/s", &["program-100000", "consumer-100000"], 1.0, 0),
    row("ns of processor per event, 1,000,000/s", &["program-1000000", "consumer-1000000"], 1.0, 0),
    row("idle, wake-ups per second", &["wakes-program", "wakes-consumer"], 1.0, 1),
    row("idle, RSS added to the program, MiB", &["rss"], MIB, 1),
    row("idle, PSS added to the program, MiB", &["pss"], MIB, 1),
    row("idle, PSS of the consumer, MiB", &["consumer-pss"], MIB, 1),
    row("idle, shared memory, MiB", &["shared"], MIB, 1),
];

/// Renders a run.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::new();
    write(&mut text, report).expect("a String accepts all writes");
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        text,
        "\n{}; {} round{}, {} s idle before each load.\n",
        report.machine,
        report.rounds,
        if report.rounds == 1 { "" } else { "s" },
        report.pause_ms as f64 / 1e3
    )?;
    writeln!(
        text,
        "| systems | `session` | `record` | LTTng-UST | dial9 |\n\
         |---|---|---|---|---|"
    )?;
    for row in ROWS {
        let now = |system| row.cell(report, system);
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.label,
            now("session"),
            now("record"),
            now("lttng"),
            now("dial9")
        )?;
    }
    if let Some(floor) = report.median("flat", "floor") {
        writeln!(
            text,
            "\nA loop that writes packets which another core has just filled keeps {:.1} M/s.",
            floor / MILLION
        )?;
    }
    for absent in &report.absent {
        writeln!(text, "\n`{}` was not measured: {}", absent.system, absent.reason)?;
    }
    writeln!(text)
}

impl Row {
    fn cell(&self, report: &Report, system: &str) -> String {
        let values = self.figures.iter().map(|what| report.median(what, system));
        let Some(values) = values.collect::<Option<Vec<_>>>() else { return "–".into() };
        // A system without another process has no second part.
        let parts: Vec<_> = match values[..] {
            [first, 0.0] => vec![first],
            _ => values,
        };
        let parts: Vec<_> = parts.iter().map(|value| format!("{:.*}", self.digits, value / self.unit)).collect();
        parts.join(" + ")
    }
}
