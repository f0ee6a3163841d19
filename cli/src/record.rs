//! `tracectl record`: records running processes, or a command, until it is enough.

mod end;
mod live;
mod report;
mod servers;
mod taken;

use crate::failure::{self, Failure};
use crate::session::budget::BudgetArguments;
use crate::session::outputs::Outputs;
use crate::session::{Reach, RuleArguments, add, complaints, insist, tell_notices, tell_silent};
use crate::{Ended, output, units};
use clap::Args;
use end::End;
use live::LiveLine;
use report::Report;
use servers::Servers;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use taken::Taken;
use tracepoint_control::{
    Ack, AckState, Acknowledged, ControlError, Controller, Counters, DrainedBy, NamedSession, Recorder, Rights,
    SessionSpec, SinkSpec, State,
};

/// How often the processes are asked how far they are.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked whether it is enough.
const TICK: Duration = Duration::from_millis(20);
/// Of how many processes that die between two looks what they recorded is kept until it is recovered.
const KEEP_DEAD: usize = 64;
/// How long the processes are waited for at the end, at least: until they have ended what they record.
const END: Duration = Duration::from_secs(5);

/// Records running processes, or a command
///
/// Until Ctrl-C, or until the time is over, the size is reached, or the process or command has ended; then all is switched off again. Of each
/// process there is a trace of its own: in CTF in the output directory, unless `--dt`, `--text` or `--udp` say otherwise; with `-o` too, both.
/// This program writes it, out of the rings of the processes, which need no rights there; of one that is killed meanwhile, or stopped, all
/// that it has committed.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl record -e 'sched:*' -p 4242 --duration 10s -o /tmp/trace
  tracectl record -e 'net:*' -e '!net:idle' --level '<=info'
  tracectl record -e 'net:received' --filter 'size > 4096 && peer == \"10.*\"' --limit 1000/s
  tracectl record -e '*' -o /tmp/trace -- ./server --port 80
  tracectl record -e '*' -o /var/tmp/trace --rotate-every 1h --keep 24 -p 4242
  tracectl record -e 'net:*' --dt /var/tmp/newest.dt --dt-slots 1000 -p 4242
  tracectl record -e 'net:*' --udp 127.0.0.1 -p 4242

{}", failure::EXIT_CODES))]
pub(crate) struct Record {
    #[command(flatten)]
    rules: RuleArguments,
    /// Where CTF traces go: a directory that is empty, or does not exist [default: tracepoint-PID, in the current one]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    /// For how long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,
    /// How much is written, of all processes together. With `--keep`, how much of it is there at a time
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "1G")]
    max_size: u64,
    /// The size of a thread's ring
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "1M")]
    ring_size: u64,
    #[command(flatten)]
    budget: BudgetArguments,
    /// Rules may match nothing that is there now
    #[arg(long)]
    wait: bool,
    /// Write one JSON object about what was recorded
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
    /// Record this command, and what it starts
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "wait"])]
    command: Vec<String>,
}

impl Record {
    /// Whether it starts a command.
    pub(crate) fn starts_a_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// Records. What it writes it writes with its own rights; of the processes it sees what `rights` let it.
    pub(crate) fn run(&self, rights: &Rights) -> Ended {
        let controller = self.rules.controller()?;
        let process = self.rules.pid.map(|pid| controller.process(pid)).transpose()?;
        let rules = self.rules.rules(&controller, &["*"])?;
        let name = format!("record-{}", std::process::id());
        let out = self.output()?;
        rights.as_self(|| self.outputs.insist_on_new_files())?;
        let mut spec = self.spec();
        let sinks = self.outputs.sinks(out.as_deref(), self.max_size)?;
        spec.check_sinks(&sinks).map_err(|error| ControlError::Spec { session: name.clone(), error })?;
        let failed = |error| ControlError::Spec { session: name.clone(), error };
        spec.check().map_err(failed)?;
        add(&mut spec, &name, &rules)?;
        if !self.wait && self.command.is_empty() {
            insist(&controller, &spec, &rules)?;
        }
        // Before anything is switched on, so that Ctrl-C never leaves anything on.
        let mut end = End::new(self.duration, process)?;
        rights.as_self(|| out.as_deref().map_or(Ok(()), make_output))?;
        let session = controller.create(&name, &spec)?;
        let recorded = self.record(&controller, &session, &spec, (sinks, rights), &mut end);
        let report = recorded.and_then(|(recorder, child)| {
            let report = report::finish(&session, recorder, self.reach.timeout.max(END))?;
            Ok((report, child))
        });
        // Whatever happened, nothing stays on; and what is empty need not stay.
        let (report, child) = report.inspect_err(|_| {
            let _ = session.destroy(self.reach.timeout, false);
            let _ = rights.as_self(|| out.as_ref().map(fs::remove_dir));
        })?;
        rights.as_self(|| self.tell(&report, out.as_deref()))?;
        if let Some(mut child) = child {
            if report.processes() == 0 {
                output::note(
                    "no process took part: a program becomes traceable by `let _agent = tracepoint_control::Agent::start();` in \
                     its `main`",
                );
            }
            if child.try_wait()?.is_none() {
                output::note(&format!("the command goes on, as process {}", child.id()));
            }
        }
        Ok(report.outcome())
    }

    /// The directory for CTF, as a path that means the same to the processes; `None` if they write something else.
    fn output(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.output {
            Some(output) => Ok(Some(std::path::absolute(output)?)),
            None if self.outputs.any() => Ok(None),
            None => Ok(Some(default_output()?)),
        }
    }

    fn spec(&self) -> SessionSpec {
        let mut spec = SessionSpec::new();
        spec.state = State::Active;
        spec.end_with_this_process();
        spec.limits.keep_dead = KEEP_DEAD;
        spec.channel.ring_size = usize::try_from(self.ring_size).unwrap_or(usize::MAX);
        spec.budget = self.budget.spec();
        spec.drain = DrainedBy::Outside;
        if !self.command.is_empty() {
            // Inherited by what it starts, and by nothing else.
            spec.tag = Some(spec.id.clone());
        }
        spec
    }

    /// Records until it is enough; the command that was started, which has ended or is about to.
    fn record(
        &self,
        controller: &Controller,
        session: &NamedSession<'_>,
        spec: &SessionSpec,
        (sinks, rights): (Vec<SinkSpec>, &Rights),
        end: &mut End,
    ) -> Result<(Recorder, Option<Child>), Failure> {
        let is_bounded = sinks.iter().any(|sink| matches!(sink.kind.as_str(), "ctf" | "text")) && !self.outputs.keeps();
        let waited = session.wait(spec.generation, self.reach.timeout)?;
        let recorder = Recorder::start(session, sinks, self.max_size, rights.clone())?;
        self.insist_on_one(&waited, &recorder)?;
        let mut child = self.start(controller, spec)?;
        let mut line = LiveLine::new();
        let mut looked: Option<Instant> = None;
        let mut servers = Servers::default();
        while !end.is_reached(child.as_mut(), TICK)? {
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                looked = Some(Instant::now());
                session.refresh(self.reach.timeout)?;
                let mut acks = session.acks()?;
                Taken::of(&recorder.recorded()).add_to(&mut acks);
                servers.tell(&acks);
                let counters = sum(&acks);
                line.show(&counters, acks.iter().map(|ack| ack.over_budget.len()).sum());
            }
            if is_bounded && recorder.is_full() {
                break;
            }
        }
        line.clear();
        Ok((recorder, child))
    }

    /// Fails if none of the processes can do what is wanted. What some cannot is told at the end.
    fn insist_on_one(&self, waited: &Acknowledged, recorder: &Recorder) -> Result<(), Failure> {
        tell_silent(&waited.silent);
        waited.acks.iter().for_each(tell_notices);
        let mut told: Vec<_> = waited.acks.iter().flat_map(complaints).collect();
        let refused = waited.acks.iter().filter(|ack| ack.state == AckState::Refused);
        let mut refused: Vec<_> = refused.filter_map(refusal).collect();
        let without = recorder.refused();
        refused.extend(without.iter().map(|(process, reason)| format!("process {}: {reason}", process.pid)));
        told.extend(refused.iter().cloned());
        let has_no_sinks = |ack: &Ack| without.iter().any(|(process, _)| *process == ack.process);
        let does_nothing = |ack: &Ack| ack.events == 0 || ack.state == AckState::Refused || has_no_sinks(ack);
        let is_hopeless = waited.silent.is_empty() && waited.acks.iter().all(does_nothing);
        if told.is_empty() || !is_hopeless || self.wait || !self.command.is_empty() {
            for text in &refused {
                output::note(text);
            }
            return Ok(());
        }
        Err(Failure::Senseless(told.join("\n")))
    }

    fn start(&self, controller: &Controller, spec: &SessionSpec) -> Result<Option<Child>, Failure> {
        let [program, arguments @ ..] = &self.command[..] else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments).env("TRACEPOINT_RUN_DIR", std::path::absolute(controller.path())?);
        command.envs(spec.tag.as_ref().map(|tag| ("TRACEPOINT_TAG", tag)));
        let failed = |error| Failure::Senseless(format!("cannot start {program}: {error}"));
        Ok(Some(command.spawn().map_err(failed)?))
    }

    fn tell(&self, report: &Report, out: Option<&Path>) -> std::io::Result<()> {
        if self.json { report.write_json(out) } else { report.write_text(out) }
    }
}

fn make_output(out: &Path) -> Result<(), Failure> {
    let failed =
        |error| Failure::Senseless(format!("cannot make {}: {error}; name another one by `-o`", out.display()));
    fs::create_dir_all(out).map_err(failed)?;
    if fs::read_dir(out).map_err(failed)?.next().is_some() {
        let out = out.display();
        return Err(Failure::Senseless(format!(
            "{out} is not empty; name a new directory by `-o`, or remove what is in it"
        )));
    }
    Ok(())
}

/// What a process says is wrong.
fn refusal(ack: &Ack) -> Option<String> {
    Some(format!("process {} ({}): {}", ack.process.pid, ack.name, ack.error.as_ref()?))
}

/// What all processes recorded so far.
fn sum(acks: &[Ack]) -> Counters {
    let mut sum = Counters::default();
    for ack in acks {
        sum.add(&ack.counters);
    }
    sum
}

/// Where traces go unless it is said.
fn default_output() -> std::io::Result<PathBuf> {
    std::path::absolute(format!("tracepoint-{}", std::process::id()))
}
