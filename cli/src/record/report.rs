//! The end of a recording, and what there is to tell of it.

use super::recovery::Recovery;
use crate::failure::{Failure, Outcome};
use crate::session::{complaints, tell_silent};
use crate::{output, units};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_control::{Ack, AckState, Application, Counters, NamedSession, State};

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
/// `recovery` is what was recovered before, and `rescue` where the rest goes.
pub(super) fn finish(
    session: &NamedSession<'_>,
    mut recovery: Recovery,
    rescue: &Path,
    timeout: Duration,
) -> Result<Report, Failure> {
    let generation = session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let waited = session.wait(generation, timeout)?;
    recovery.go_on(session, rescue)?;
    // What could not be recovered stays.
    session.destroy(timeout, !recovery.is_wanting() && waited.silent.is_empty())?;
    recovery.miss(&waited.acks, &waited.silent, generation);
    let Recovery { processes: recovered, failures, .. } = recovery;
    let mut report = Report { acks: waited.acks, silent: waited.silent, recovered, failures };
    report.failures.extend(report.acks.iter().filter_map(super::refusal));
    report.failures.extend(report.acks.iter().flat_map(complaints));
    Ok(report)
}

impl Report {
    /// How many processes took part: others have answered that they have nothing to do.
    pub(super) fn processes(&self) -> usize {
        let took_part = |ack: &&Ack| {
            ack.state != AckState::Waiting || !ack.outputs.is_empty() || ack.counters != Counters::default()
        };
        self.acks.iter().filter(took_part).count()
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

    pub(super) fn write_text(&self, out: Option<&Path>) -> io::Result<()> {
        let counters = self.counters();
        let mut text = output::coloured();
        let places = self.places(out);
        let (events, processes) = (counters.recorded, self.processes());
        let plural = if processes == 1 { "process" } else { "processes" };
        write!(text, "{events} events of {processes} {plural}")?;
        match &places[..] {
            [] => writeln!(text)?,
            [place] => writeln!(text, ", {}, in {}", units::bytes(size(place)), place.display())?,
            places => {
                writeln!(text, ", in")?;
                for place in places {
                    writeln!(text, "  {}, {}", place.display(), units::bytes(size(place)))?;
                }
            }
        }
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
        let traces: Vec<_> =
            places.iter().filter(|place| place.exists() && !is_text(place)).map(|p| p.display().to_string()).collect();
        if counters.recorded > 0 && !traces.is_empty() {
            writeln!(text, "look at them by: tracectl view {}", traces.join(" "))?;
            if let Some(out) = out.filter(|out| out.exists()) {
                writeln!(text, "             or: babeltrace2 {}", out.display())?;
            }
        }
        text.flush()?;
        tell_silent(&self.silent);
        self.failures.iter().for_each(|failure| output::note(failure));
        Ok(())
    }

    /// Where events are: in the directory, in files of the processes, and in what was recovered.
    fn places(&self, out: Option<&Path>) -> Vec<PathBuf> {
        let outputs = self.acks.iter().flat_map(|ack| &ack.outputs);
        let recovered = self.recovered.iter().map(|process| &process.output);
        let mut places: Vec<PathBuf> = out.map(Path::to_owned).into_iter().collect();
        for place in outputs.chain(recovered) {
            if !places.contains(place) && out.is_none_or(|out| !place.starts_with(out)) {
                places.push(place.clone());
            }
        }
        places
    }

    pub(super) fn write_json(&self, out: Option<&Path>) -> io::Result<()> {
        let silent: Vec<_> = self.silent.iter().map(|process| process.info().pid).collect();
        output::json(&json!({
            "path": out.map(Path::to_string_lossy),
            "outputs": self.places(out).iter().map(|place| place.to_string_lossy()).collect::<Vec<_>>(),
            "counters": self.counters(),
            "processes": self.acks,
            "recovered": self.recovered,
            "not_acknowledged": silent,
            "failures": self.failures,
        }))
    }
}

/// Whether it is for eyes alone: a file that is no dt file.
fn is_text(place: &Path) -> bool {
    place.is_file() && tracepoint_reader::DtTrace::open(place).is_err()
}

/// How many bytes a file has, or those in a directory, and in directories in it.
fn size(dir: &Path) -> u64 {
    if dir.is_file() {
        return dir.metadata().map_or(0, |file| file.len());
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(file) if file.is_dir() => size(&entry.path()),
            Ok(file) => file.len(),
            Err(_) => 0,
        })
        .sum()
}
