//! The end of a recording, and what there is to tell of it.

use super::taken::Taken;
use crate::failure::{Failure, Outcome};
use crate::session::{complaints, tell_silent};
use crate::{output, units};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_control::{
    Ack, AckState, Acknowledged, Application, Counters, NamedSession, ProcessKey, Recorded, Recorder, State,
};
use tracepoint_reader::recover::RecoveredProcess;

/// What was recorded.
#[derive(Debug, Default)]
pub(super) struct Report {
    acks: Vec<Ack>,
    silent: Vec<Application>,
    /// Processes that died, and what was taken of them.
    recovered: Vec<RecoveredProcess>,
    failures: Vec<String>,
}

/// Switches all off, waits until the processes have ended the recording, takes the rest of their packets, and removes the session.
pub(super) fn finish(session: &NamedSession<'_>, recorder: Recorder, timeout: Duration) -> Result<Report, Failure> {
    let generation = session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let waited = session.wait(generation, timeout)?;
    let keys: Vec<_> = waited.silent.iter().map(|process| process.info().key()).collect();
    let all = recorder.finish(&keys);
    // What could not be taken stays.
    let is_whole = all.iter().all(|recorded| recorded.complete || is_silent(&keys, recorded));
    // Who did not answer then is not waited for again.
    session.destroy(if keys.is_empty() { timeout } else { Duration::ZERO }, is_whole)?;
    let mut failures: Vec<_> = waited.acks.iter().filter_map(super::refusal).collect();
    failures.extend(waited.acks.iter().flat_map(complaints));
    for recorded in &all {
        let notes = recorded.notes.iter().filter(|_| !is_silent(&keys, recorded));
        let pid = recorded.process.map_or(0, |process| process.pid);
        failures.extend(notes.chain(&recorded.errors).map(|text| format!("process {pid}: {text}")));
    }
    let taken = Taken::of(&all);
    let Acknowledged { mut acks, silent, .. } = waited;
    let died: Vec<_> = acks.iter().filter(|ack| has_died(ack, &keys)).cloned().collect();
    for ack in died.iter().filter(|ack| taken.get(ack.process).is_none()) {
        let (pid, name) = (ack.process.pid, &ack.name);
        failures.push(format!(
            "process {pid} ({name}) died, and its rings were gone before anything was taken: what was in them is lost"
        ));
    }
    taken.add_to(&mut acks);
    let recovered = died.iter().filter_map(|ack| Some(recovered(session, ack.process, taken.get(ack.process)?)));
    let mut recovered: Vec<_> = recovered.collect();
    // Those that did not live long enough to say anything of themselves.
    let unheard = taken.all().filter(|(process, _)| !acks.iter().any(|ack| ack.process == *process));
    recovered.extend(unheard.map(|(process, recorded)| self::recovered(session, process, recorded)));
    Ok(Report { acks, silent, recovered, failures })
}

/// Whether a process recorded still when it was heard of last, and is not there any more.
fn has_died(ack: &Ack, silent: &[ProcessKey]) -> bool {
    ack.state == AckState::Recording && !silent.contains(&ack.process)
}

fn is_silent(silent: &[ProcessKey], recorded: &Recorded) -> bool {
    recorded.process.is_some_and(|process| silent.contains(&process))
}

/// What there is of a process that died.
fn recovered(session: &NamedSession<'_>, process: ProcessKey, recorded: &Recorded) -> RecoveredProcess {
    let mut told = RecoveredProcess::default();
    let counters = recorded.counters.clone().unwrap_or_default();
    session.name().clone_into(&mut told.session);
    (told.pid, told.complete, told.records, told.lost) =
        (process.pid, recorded.complete, written(&counters), counters.lost);
    told.output = recorded.outputs.first().cloned().unwrap_or_default();
    told.notes.clone_from(&recorded.notes);
    told
}

/// What came out of the rings, and was not lost behind them.
fn written(counters: &Counters) -> u64 {
    let behind = ["overwritten", "sink"].iter().filter_map(|reason| counters.lost.get(*reason));
    counters.recorded.saturating_sub(behind.sum())
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

    /// The sums.
    fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.acks.iter().for_each(|ack| sum.add(&ack.counters));
        for process in &self.recovered {
            if !self.acks.iter().any(|ack| ack.process.pid == process.pid) {
                let mut counters = Counters::default();
                (counters.recorded, counters.lost) = (process.records, process.lost.clone());
                sum.add(&counters);
            }
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
            writeln!(text, "  process {} died; {} events of it were taken", process.pid, process.records)?;
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
