//! The end of a recording, and its report.

use super::recorded::RecordedProcesses;
use super::servers::ServerCounts;
use super::unrecorded::UnrecordedProcesses;
use crate::failure::{Failure, Outcome};
use crate::session::acks::{counters_json, recorded_json, report_silent, unsupported_rules_by_index};
use crate::table::{Table, number, text};
use crate::{message, output, units};
use anstyle::Style;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_controller::{Acknowledgements, Application, KernelRecorded, NamedSession, RecordedProcess, Recorder};
use tracepoint_reader::process::ProcessKey;
use tracepoint_reader::recover::RecoveredProcess;
use tracepoint_run_dir::{Ack, AckState, Counters, RuleAck};
use tracepoint_session_spec::State;

/// The result of a recording, with its failures.
#[derive(Debug, Default)]
pub(super) struct Report {
    acks: Vec<Ack>,
    silent: Vec<Application>,
    /// Processes that died, and the records taken from their rings.
    recovered: Vec<RecoveredProcess>,
    /// Processes of which nothing was recorded.
    pub(super) unrecorded: UnrecordedProcesses,
    /// True if a process was killed, or ended without closing its recording.
    pub(super) died: bool,
    /// True if the recording has reached its maximum size.
    pub(super) is_full: bool,
    failures: Vec<String>,
    /// Notes that are not failures: rules that some processes do not support.
    notes: Vec<String>,
    /// The recordings of the kernel, by the name of their trace.
    kernel: BTreeMap<&'static str, KernelRecorded>,
    /// Counts of the servers of processes.
    served: Vec<ServerCounts>,
}

/// Stops the session, waits until the processes have ended the recording, takes the remaining packets, and removes the session. Names those
/// `expected` processes of which nothing was recorded. Calls `stopped` when no process records any more.
pub(super) fn finish(
    session: &NamedSession<'_>,
    (recorder, mut unrecorded): (Recorder, UnrecordedProcesses),
    expected: &[Application],
    timeout: Duration,
    stopped: impl FnOnce(),
) -> Result<Report, Failure> {
    unrecorded.update(&session.acks()?, &recorder);
    let generation = session.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let waited = session.wait(generation, timeout)?;
    stopped();
    let keys: Vec<_> = waited.silent.iter().map(|process| process.info().key()).collect();
    let all = recorder.finish(&keys);
    // Rings that could not be read completely are kept.
    let is_whole = all.iter().all(|recorded| recorded.complete || is_silent(&keys, recorded));
    // Do not wait again for processes that never answered.
    let removed = session.destroy(if keys.is_empty() { timeout } else { Duration::ZERO }, is_whole)?;
    let mut failures = Vec::new();
    let (mut notes, unsupported) = unsupported_rules(&waited.acks);
    if !removed.dead.is_empty() {
        let rings = message::counted(removed.dead.len() as u64, "process");
        notes.push(format!(
            "the rings of {rings} are kept: events that are called lost may be in them; `tracectl recover {} -o OUT` reads them",
            session.name()
        ));
    }
    failures.extend(unsupported);
    // A process may have started and ended since the last check of refusals.
    for (process, reason) in
        all.iter().filter(|it| is_unrecorded(it)).filter_map(|it| it.process.zip(it.errors.first()))
    {
        unrecorded.add(process, reason);
    }
    for recorded in all.iter().filter(|recorded| !is_unrecorded(recorded)) {
        let own_notes = recorded.notes.iter().filter(|_| !is_silent(&keys, recorded));
        let pid = recorded.process.map_or(0, |process| process.pid);
        failures.extend(own_notes.chain(&recorded.errors).map(|text| format!("process {pid}: {text}")));
    }
    let by_process = RecordedProcesses::new(&all);
    let Acknowledgements { mut acks, silent, .. } = waited;
    let died: Vec<_> = acks.iter().filter(|ack| has_died(ack, &keys)).cloned().collect();
    for ack in died.iter().filter(|ack| by_process.get(ack.process).is_none()) {
        let (pid, name) = (ack.process.pid, &ack.name);
        failures.push(format!(
            "process {pid} ({name}) died, and its rings were gone before anything was read: the events in them are lost"
        ));
    }
    by_process.add_to(&mut acks);
    // The records of these processes are in no output.
    for ack in acks.iter_mut().filter(|ack| by_process.get(ack.process).is_none_or(is_unrecorded)) {
        ack.counters.lose_kept();
    }
    let recovered = died.iter().filter_map(|ack| Some(recovered(session, ack.process, by_process.get(ack.process)?)));
    let mut recovered: Vec<_> = recovered.collect();
    // Processes that died before their first acknowledgement.
    let acknowledged: BTreeSet<_> = acks.iter().map(|ack| ack.process).collect();
    let unacknowledged = by_process.all().filter(|(process, _)| !acknowledged.contains(process));
    recovered.extend(unacknowledged.map(|(process, recorded)| self::recovered(session, process, recorded)));
    for process in expected.iter().chain(&silent) {
        let key = process.info().key();
        if by_process.get(key).is_none() && !acknowledged.contains(&key) {
            unrecorded.add_silent(process);
        }
    }
    let is_recorded = |process| by_process.get(process).is_some_and(|recorded| !is_unrecorded(recorded));
    let unrecorded = unrecorded.without(is_recorded);
    // The other refusals are already listed, with the same reason, as processes that were not recorded.
    let refused = acks.iter().filter(|ack| !unrecorded.has(ack.process)).filter_map(super::refusal);
    failures.splice(0..0, refused);
    let died = !died.is_empty() || !recovered.is_empty();
    let is_full = all.iter().any(|recorded| recorded.is_full);
    let served = ServerCounts::of(&all);
    Ok(Report { acks, silent, recovered, unrecorded, died, is_full, failures, notes, kernel: BTreeMap::new(), served })
}

/// Messages about rules that processes do not support: notes, and failures. A filter usually fits only some programs, so a rule is a failure
/// only if no process supports it.
fn unsupported_rules(acks: &[Ack]) -> (Vec<String>, Vec<String>) {
    let matches = |ack: &Ack, index| matches!(ack.rules.get(index), Some(Some(RuleAck::Events(1..))));
    let is_supported = |index| acks.iter().any(|ack| matches(ack, index));
    let all = acks.iter().flat_map(unsupported_rules_by_index);
    let (notes, failures): (Vec<_>, Vec<_>) = all.partition(|(index, _)| is_supported(*index));
    let texts = |rules: Vec<(usize, String)>| rules.into_iter().map(|(_, text)| text).collect();
    (texts(notes), texts(failures))
}

fn has_died(ack: &Ack, silent: &[ProcessKey]) -> bool {
    matches!(ack.state, AckState::Recording | AckState::Dead) && !silent.contains(&ack.process)
}

/// True if the recorder could not create the sinks of a process.
fn is_unrecorded(recorded: &RecordedProcess) -> bool {
    recorded.counters.is_none() && recorded.outputs.is_empty() && !recorded.errors.is_empty()
}

fn is_silent(silent: &[ProcessKey], recorded: &RecordedProcess) -> bool {
    recorded.process.is_some_and(|process| silent.contains(&process))
}

/// The packets taken from a process that died.
fn recovered(session: &NamedSession<'_>, process: ProcessKey, recorded: &RecordedProcess) -> RecoveredProcess {
    let mut taken = RecoveredProcess::default();
    let counters = recorded.counters.clone().unwrap_or_default();
    session.name().clone_into(&mut taken.session);
    (taken.pid, taken.complete, taken.records, taken.lost) =
        (process.pid, recorded.complete, counters.kept(), counters.lost);
    taken.output = recorded.outputs.first().cloned().unwrap_or_default();
    taken.notes.clone_from(&recorded.notes);
    taken
}

impl Report {
    /// The number of processes that took part. The others have acknowledged that they have nothing to do.
    pub(super) fn processes(&self) -> usize {
        let took_part = |ack: &&Ack| {
            ack.state != AckState::Waiting || !ack.outputs.is_empty() || ack.counters != Counters::default()
        };
        self.acks.iter().filter(took_part).count()
    }

    /// The outcome, before options such as `--fail-on-loss` are applied.
    pub(super) fn outcome(&self) -> Outcome {
        if !self.unrecorded.is_empty() {
            return Outcome::NotRecorded;
        }
        let success = self.failures.is_empty() && self.silent.is_empty();
        if success { Outcome::Success } else { Outcome::Incomplete }
    }

    pub(super) fn any_lost(&self) -> bool {
        self.counters().total_lost() > 0
    }

    pub(super) fn add_kernel(&mut self, name: &'static str, kernel: KernelRecorded) {
        self.failures.extend(kernel.errors.iter().map(|error| format!("the kernel: {error}")));
        self.is_full |= kernel.is_full;
        self.kernel.insert(name, kernel);
    }

    pub(super) fn add_threads(&mut self, (threads, failures): (Option<(&'static str, KernelRecorded)>, Vec<String>)) {
        self.failures.extend(failures);
        if let Some((name, threads)) = threads {
            self.add_kernel(name, threads);
        }
    }

    /// The summed counts of all processes and the kernel.
    fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.kernel.values().for_each(|kernel| sum.add(&kernel.counters));
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
        let mut text_out = output::styled();
        let outputs = self.outputs(out);
        // Omit outputs to which nothing was written.
        let outputs: Vec<_> = outputs.into_iter().filter(|output| size(output) > 0).collect();
        let (events, lost, processes) = (counters.kept(), counters.total_lost(), self.processes());
        let plural = if processes == 1 { "process" } else { "processes" };
        if self.kernel.is_empty() {
            write!(text_out, "{events} events of {processes} {plural}")?;
        } else if processes == 0 {
            write!(text_out, "{events} events of the kernel")?;
        } else {
            write!(text_out, "{events} events of {processes} {plural} and the kernel")?;
        }
        if lost > 0 {
            let tenths = u128::from(lost) * 1000 / (u128::from(events) + u128::from(lost));
            write!(text_out, ", {lost} lost ({}.{} %)", tenths / 10, tenths % 10)?;
        }
        match &outputs[..] {
            [] => writeln!(text_out)?,
            [output] => writeln!(text_out, ", {}, in {}", units::bytes(size(output)), output.display())?,
            outputs => {
                writeln!(text_out, ", in")?;
                let mut table = Table::new("  ");
                for output in outputs {
                    table.row(Style::new(), [text(output.display()), number(units::bytes(size(output)))]);
                }
                table.write(&mut text_out)?;
            }
        }
        let mut lost = Table::new("  ");
        for (reason, count) in &counters.lost {
            lost.row(Style::new(), [text("lost"), number(count), text(lost_by(&counters, reason))]);
        }
        lost.write(&mut text_out)?;
        if let Some((reason, _)) = counters.lost.iter().max_by_key(|(_, count)| **count)
            && let Some(remedy) = remedy(reason)
        {
            writeln!(text_out, "  to lose fewer: {remedy}")?;
        }
        for served in &self.served {
            writeln!(text_out, "  {}", served.text())?;
        }
        for (cpu, lost) in self.kernel.values().flat_map(|kernel| &kernel.lost_by_cpu) {
            writeln!(text_out, "  CPU {cpu} lost {lost} events of the kernel; see `--kernel-ring-size`")?;
        }
        for (ack, over) in self.acks.iter().flat_map(|ack| ack.over_budget.iter().map(move |over| (ack, over))) {
            writeln!(text_out, "  process {}: {over}", ack.process.pid)?;
        }
        for process in &self.recovered {
            writeln!(text_out, "  process {} died; {} of its events were recovered", process.pid, process.records)?;
        }
        let traces: Vec<_> = outputs.iter().filter(|output| output.exists() && !is_text(output)).collect();
        if events > 0 && !traces.is_empty() {
            let paths: Vec<_> = traces.iter().map(|path| path.display().to_string()).collect();
            writeln!(text_out, "view them with: tracectl view {}", paths.join(" "))?;
            if let Some(out) = out.filter(|out| out.exists()) {
                writeln!(text_out, "            or: babeltrace2 {}", out.display())?;
            }
        }
        text_out.flush()?;
        report_silent(self.silent.iter().filter(|process| !self.unrecorded.has(process.info().key())));
        self.unrecorded.messages().chain(&self.failures).chain(&self.notes).for_each(|text| message::note(text));
        Ok(())
    }

    /// The outputs: the directory, files of the processes, and recovered traces.
    fn outputs(&self, out: Option<&Path>) -> Vec<PathBuf> {
        let own = self.acks.iter().flat_map(|ack| &ack.outputs);
        let of_kernel = self.kernel.values().flat_map(|kernel| &kernel.outputs);
        // Streamed packets are in no local output.
        let recovered =
            self.recovered.iter().map(|process| &process.output).filter(|output| !output.as_os_str().is_empty());
        let recovered = recovered.chain(of_kernel);
        let mut outputs: Vec<PathBuf> = out.map(Path::to_owned).into_iter().collect();
        for output in own.chain(recovered) {
            if !outputs.contains(output) && out.is_none_or(|out| !output.starts_with(out)) {
                outputs.push(output.clone());
            }
        }
        outputs
    }

    pub(super) fn write_json(&self, out: Option<&Path>) -> io::Result<()> {
        let counters = self.counters();
        let silent: Vec<_> = self.silent.iter().map(|process| process.info().pid).collect();
        output::json(&json!({
            "path": out.map(Path::to_string_lossy),
            "outputs": self.outputs(out).iter().map(|output| output.to_string_lossy()).collect::<Vec<_>>(),
            "counters": counters_json(&counters),
            "recorded": counters.kept(),
            "lost": counters.total_lost(),
            "processes": self.acks.iter().map(recorded_json).collect::<Vec<_>>(),
            "recovered": self.recovered,
            "kernel": self.kernel.get("kernel").map(kernel_json),
            "waits": self.kernel.get("waits").map(kernel_json),
            "samples": self.kernel.get("samples").map(kernel_json),
            "served": self.served.iter().map(ServerCounts::json).collect::<Vec<_>>(),
            "not_recorded": self.unrecorded.pids(),
            "not_acknowledged": silent,
            "max_size_reached": self.is_full,
            "notes": self.notes,
            "failures": self.unrecorded.messages().chain(&self.failures).collect::<Vec<_>>(),
        }))
    }
}

fn kernel_json(kernel: &KernelRecorded) -> Value {
    let event = |(name, [fired, recorded, lost]): &(String, [u64; 3])| json!({ "name": name, "fired": fired, "recorded": recorded, "lost": lost });
    json!({
        "counters": counters_json(&kernel.counters),
        "events": kernel.events.iter().map(event).collect::<Vec<_>>(),
        "lost_by_cpu": kernel.lost_by_cpu.iter().map(|(cpu, lost)| json!({ "cpu": cpu, "lost": lost })).collect::<Vec<_>>(),
        "outputs": kernel.outputs.iter().map(|output| output.to_string_lossy()).collect::<Vec<_>>(),
    })
}

/// True if an output is text: a file that is not a dt file.
fn is_text(output: &Path) -> bool {
    output.is_file() && tracepoint_reader::DtTrace::open(output).is_err()
}

/// A loss reason; with details if the sinks lost the events.
fn lost_by(counters: &Counters, reason: &str) -> String {
    if reason != "sink" || counters.sink_lost.is_empty() {
        return reason.to_owned();
    }
    let known: Vec<_> = counters.sink_lost.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    format!("{reason} ({})", known.join(", "))
}

/// The way to lose fewer events for this reason; `None` where nothing in this command helps.
fn remedy(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "ring_full" => {
            "`--lossless`, with which threads wait for space and the program runs at the speed of the output; a larger `--ring-size`; or fewer events, by a filter or a limit"
        }
        "no_ring" => "a larger `--memory`; or `--spares` with the number of threads that start together",
        "too_large" => "a larger `--ring-size`: an event must fit into an eighth of it",
        "not_attached" => {
            "`Agent::builder().follow_fork(true)` in the program, whose forked children fired these events"
        }
        "sink" => {
            "`tracectl status` shows the reason while it records: a full disk, `--max-size`, or an output that fails"
        }
        "overwritten" => "a larger `--ring-size`, or `--policy discard`",
        _ => return None,
    })
}

/// The size in bytes of a file, or of all files below a directory.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_process_that_died_has_no_output_here() {
        let report = Report { recovered: vec![RecoveredProcess::default()], ..Report::default() };
        assert!(report.outputs(None).is_empty());
        assert_eq!(report.outputs(Some(Path::new("out"))), [Path::new("out")]);
    }

    #[test]
    fn a_filter_that_fits_one_program_is_no_failure() -> Result<(), serde_json::Error> {
        let ack = |pid: u32, rules: Value| {
            let process = format!("{pid}-1");
            serde_json::from_value::<Ack>(json!({
                "process": process, "name": "shop", "id": "", "generation": 1, "state": "recording", "rules": rules, "events": 1, "counters": {}, "outputs": [],
            }))
        };
        let fits = ack(1, json!([{ "events": 1 }, { "unsupported": "no field" }, { "events": 0 }]))?;
        let others =
            ack(2, json!([{ "unsupported": "no field" }, { "unsupported": "no field" }, { "unsupported": "no" }]))?;
        let (notes, failures) = unsupported_rules(&[fits, others]);
        assert_eq!(notes, ["process 2 (shop) does not support rule 1: no field"]);
        let text = |pid, rule, why| format!("process {pid} (shop) does not support rule {rule}: {why}");
        assert_eq!(failures, [text(1, 2, "no field"), text(2, 2, "no field"), text(2, 3, "no")]);
        Ok(())
    }
}
