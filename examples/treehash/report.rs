//! The results, for people and for programs.

use crate::excerpt::Excerpt;
use crate::problem::Problem;
use crate::progress::Totals;
use crate::recording::Recorded;
use crate::walk::Work;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// A run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The task.
    pub work: Work,
    /// The counts.
    pub totals: Totals,
    /// The duration, without start and end of the recording.
    pub elapsed: Duration,
    /// The result of the recording; `None` with the tracepoints off.
    pub recorded: Option<Recorded>,
}

impl Report {
    /// One JSON object, on one line.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { work, totals, elapsed, recorded } = self;
        let problems: BTreeMap<_, _> = Problem::ALL.map(|kind| (kind.name(), totals.problems[kind as usize])).into();
        let object = json!({
            "root": work.root.to_string_lossy(),
            "threads": work.threads,
            "files": totals.files,
            "bytes": totals.bytes,
            "directories": totals.directories,
            "links": totals.links,
            "errors": problems,
            "elapsed": elapsed.as_secs_f64(),
            "out": recorded.as_ref().map(|recorded| recorded.out.to_string_lossy()),
            "written": recorded.as_ref().map(|recorded| recorded.bytes),
            "events": recorded.as_ref().map(|recorded| &recorded.events),
            "lost": recorded.as_ref().map(|recorded| &recorded.lost),
        });
        writeln!(out, "{}", Value::to_string(&object))
    }

    /// Writes tables.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_text(&self, out: &mut impl Write, excerpt: Option<&Excerpt>) -> io::Result<()> {
        let Self { work, totals, elapsed, recorded } = self;
        let mode = if recorded.is_some() { "recorded" } else { "tracepoints off" };
        writeln!(
            out,
            "{} files with {} in {} directories hashed by {} threads in {:.3} s ({mode})",
            HumanCount(totals.files),
            HumanBytes(totals.bytes),
            HumanCount(totals.directories),
            work.threads,
            elapsed.as_secs_f64(),
        )?;
        let part = |what: &str, count: u64| if count > 0 { format!("{what} {count}  ") } else { String::new() };
        let mut aside: String = part("links skipped:", totals.links);
        for kind in Problem::ALL {
            aside += &part(&format!("{}:", kind.name()), totals.problems[kind as usize]);
        }
        if !aside.is_empty() {
            writeln!(out, "not hashed: {}", aside.trim_end())?;
        }
        let Some(recorded) = recorded else { return Ok(()) };

        writeln!(out, "\n{}\n", events(recorded))?;
        write!(out, "written: {}, lost: ", HumanBytes(recorded.bytes))?;
        if recorded.lost.is_empty() {
            writeln!(out, "none")?;
        } else {
            let reasons: Vec<_> = recorded.lost.iter().map(|(reason, count)| format!("{count} ({reason})")).collect();
            writeln!(out, "{}", reasons.join(", "))?;
        }
        if let Some(excerpt) = excerpt {
            writeln!(out)?;
            excerpt.first.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            if excerpt.between > 0 {
                writeln!(out, "… {} more …", HumanCount(excerpt.between))?;
            }
            excerpt.last.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        let trace = quoted(&recorded.out);
        let view = format!("cargo run -p tracectl -- view {trace}");
        if recorded.is_file {
            return writeln!(
                out,
                "\nThe newest packets are in {trace}. To open it:\n  {view}\n  \
                 cargo run -p tracectl -- convert {trace} -o DIR && babeltrace2 DIR"
            );
        }
        writeln!(out, "\nThe trace is in {trace}. To open it:\n  babeltrace2 {trace}\n  {view}")
    }
}

/// The counts of each event.
fn events(recorded: &Recorded) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["tracepoint", "fired", "recorded", "lost"]);
    for event in &recorded.events {
        let lost: u64 = event.lost.values().sum();
        let counts = [event.fired, event.recorded, lost].map(|count| HumanCount(count).to_string());
        table.add_row(std::iter::once(event.name.clone()).chain(counts));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
