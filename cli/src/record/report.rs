//! The end of a recording, and what there is to tell of it.

use crate::failure::{Failure, Outcome};
use crate::session::{complaints, tell_silent};
use crate::{output, units};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
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
pub(super) fn finish(session: &NamedSession<'_>, out: &Path, timeout: Duration) -> Result<Report, Failure> {
    let generation = session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let waited = session.wait(generation, timeout)?;
    let mut report = Report { acks: waited.acks, silent: waited.silent, ..Report::default() };
    for dir in session.rings_of_dead()? {
        match recover(&dir, out) {
            Ok(process) => report.recovered.push(process),
            Err(error) => report.failures.push(format!("{}: {error}", dir.display())),
        }
    }
    // What could not be recovered stays.
    session.destroy(timeout, report.failures.is_empty() && report.silent.is_empty())?;
    report.failures.extend(report.acks.iter().filter_map(|ack| {
        let error = ack.error.as_ref()?;
        Some(format!("process {} ({}): {error}", ack.process.pid, ack.name))
    }));
    report.failures.extend(report.acks.iter().flat_map(complaints));
    Ok(report)
}

/// Makes one whole trace of what a process that died had written and what was in its rings still, in place of the part.
fn recover(dir: &Path, out: &Path) -> Result<tracepoint_reader::recover::RecoveredProcess, Failure> {
    let part = fs::read_to_string(dir.join("outputs")).unwrap_or_default();
    let part = part.lines().find_map(|line| line.strip_prefix("ctf ")).map(PathBuf::from);
    let name = dir.file_name().unwrap_or_default();
    let growing = out.join(format!(".{}.recovered", name.to_string_lossy()));
    let recovered = tracepoint_reader::recover(dir, &growing)?;
    let mut process = recovered.processes.into_iter().next().unwrap_or_default();
    // What stands in a file of the process's is no leave to replace anything but an entry of the output.
    let is_entry = |part: &PathBuf| part.parent() == Some(out) && part.file_name().is_some();
    process.output = part.filter(is_entry).unwrap_or_else(|| out.join(name));
    if process.output.exists() {
        fs::remove_dir_all(&process.output)?;
    }
    fs::rename(&growing, &process.output)?;
    Ok(process)
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
