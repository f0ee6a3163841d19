//! The end of a recording, and what there is to tell of it.

use super::recovery::Recovery;
use crate::failure::{Failure, Outcome};
use crate::session::{complaints, tell_silent};
use crate::{output, units};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tracepoint_control::{Ack, Application, Counters, NamedSession, State};

/// What was recorded.
#[derive(Debug, Default)]
pub(super) struct Report {
    acks: Vec<Ack>,
    silent: Vec<Application>,
    /// Processes that died, and what was recovered of them.
    recovered: Vec<tracepoint_reader::recover::RecoveredProcess>,
    failures: Vec<String>,
}

/// Switches all off, waits until the traces are whole, recovers what dead processes left, and removes the session.
/// `recovery` is what was recovered before.
pub(super) fn finish(
    session: &NamedSession<'_>,
    mut recovery: Recovery,
    out: &Path,
    timeout: Duration,
) -> Result<Report, Failure> {
    let generation = session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let waited = session.wait(generation, timeout)?;
    recovery.go_on(session, out)?;
    // What could not be recovered stays.
    session.destroy(timeout, !recovery.is_wanting() && waited.silent.is_empty())?;
    recovery.miss(&waited.acks, &waited.silent, generation);
    let Recovery { processes: recovered, failures, .. } = recovery;
    let mut report = Report { acks: waited.acks, silent: waited.silent, recovered, failures };
    report.failures.extend(report.acks.iter().filter_map(|ack| {
        let error = ack.error.as_ref()?;
        Some(format!("process {} ({}): {error}", ack.process.pid, ack.name))
    }));
    report.failures.extend(report.acks.iter().flat_map(complaints));
    Ok(report)
}

impl Report {
    /// How many processes took part.
    pub(super) fn processes(&self) -> usize {
        self.acks.len()
    }

    pub(super) fn outcome(&self) -> Outcome {
        let well = self.failures.is_empty() && self.silent.is_empty();
        if well { Outcome::Well } else { Outcome::Wanting }
    }

    /// The sums: of processes that died, what was recovered.
    fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        let is_dead = |ack: &&Ack| self.recovered.iter().any(|process| process.pid == ack.process.pid);
        self.acks.iter().filter(|ack| !is_dead(ack)).for_each(|ack| sum.add(&ack.counters));
        for process in &self.recovered {
            let mut counters = Counters::default();
            (counters.recorded, counters.lost) = (process.records, process.lost.clone());
            sum.add(&counters);
        }
        sum
    }

    pub(super) fn write_text(&self, out: &Path) -> io::Result<()> {
        let counters = self.counters();
        let mut text = output::coloured();
        let path = out.display();
        writeln!(
            text,
            "{} events of {} {}, {}, in {path}",
            counters.recorded,
            self.processes(),
            if self.processes() == 1 { "process" } else { "processes" },
            units::bytes(size(out))
        )?;
        for (reason, count) in &counters.lost {
            writeln!(text, "  lost {count}: {reason}")?;
        }
        for ack in &self.acks {
            for over in &ack.over_budget {
                writeln!(text, "  process {}: {over}", ack.process.pid)?;
            }
        }
        for process in &self.recovered {
            writeln!(text, "  process {} died; {} events of it were recovered", process.pid, process.records)?;
        }
        if counters.recorded > 0 {
            writeln!(text, "look at them by: tracectl view {path}")?;
            writeln!(text, "             or: babeltrace2 {path}")?;
        }
        text.flush()?;
        tell_silent(&self.silent);
        self.failures.iter().for_each(|failure| output::note(failure));
        Ok(())
    }

    pub(super) fn write_json(&self, out: &Path) -> io::Result<()> {
        let silent: Vec<_> = self.silent.iter().map(|process| process.info().pid).collect();
        output::json(&json!({
            "path": out.to_string_lossy(),
            "counters": self.counters(),
            "processes": self.acks,
            "recovered": self.recovered,
            "not_acknowledged": silent,
            "failures": self.failures,
        }))
    }
}

/// How many bytes the files in a directory have, those in directories in it included.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(file) if file.is_dir() => size(&entry.path()),
            Ok(file) => file.len(),
            Err(_) => 0,
        })
        .sum()
}
