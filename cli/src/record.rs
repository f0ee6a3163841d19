//! `tracectl record`: records running processes, or a command.

mod clocks;
mod command;
mod conclude;
mod hosts;
mod kernel;
mod live_line;
mod recorded;
pub(crate) mod remote;
mod report;
mod servers;
mod stop;
mod unrecorded;

use crate::failure::{Failure, VerbResult};
use crate::session::acks::{of_process, report_notices, report_silent, unsupported_rules};
use crate::session::budget::BudgetArguments;
use crate::session::channels::ChannelArguments;
use crate::session::outputs::OutputArguments;
use crate::session::rules::{RouteArguments, RuleArguments, WaitHint, add, require_features, require_matches};
use crate::session::{WaitArguments, controller};
use crate::{message, units};
use clap::Args;
use clocks::FarClocks;
use hosts::HostArguments;
use kernel::{KernelArguments, Threads};
use live_line::RecordLine;
use recorded::RecordedProcesses;
use remote::Side;
use servers::Servers;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use stop::StopCondition;
use tracepoint_controller::{
    Acknowledgements, Application, Controller, KernelRecorder, KernelRecording, NamedSession, Recorder,
};
use tracepoint_run_dir::{Ack, AckState, Rights};
use tracepoint_session_io::ControlError;
use tracepoint_session_io::owner::end_with_this_process;
use tracepoint_session_spec::{DrainedBy, SessionSpec, SinkSpec, State};
use unrecorded::UnrecordedProcesses;

/// How often the counters of the processes are refreshed while the live line is shown.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// How often the recorder otherwise looks for processes that have refused. It only reads files: no process is woken up.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The longest delay until the recorder notices the end of a process that it does not drain.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// With many processes, refreshing and looking each take at most 1/`REFRESH_SHARE` of the time.
const REFRESH_SHARE: u32 = 10;
/// Rings of dead processes are all kept until the recorder has read and removed them. A killed recorder leaves the rings of all its processes at
/// once, within the bounds of [`Controller::leftovers`].
const KEEP_DEAD: usize = usize::MAX >> 1;
/// Minimum time to wait, at the end, for the processes to end their recordings.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Records running processes, or a command
///
/// Recording ends with Ctrl-C, after `--duration`, at `--max-size`, or when the process or command has ended; then all events are switched off
/// again. Each process has its own trace: CTF in the output directory, or the outputs of `--dt`, `--text`, `--udp`, `--stream` and `--relay`, or both
/// with `-o`. This program reads the rings of the processes and writes the traces. The processes therefore need no rights in the output directory,
/// and a process that is killed or stopped loses no committed event.
///
/// With a command, a signal to this program also ends the command (`SIGTERM`). The exit code is the command's status if that is not 0, or 128 plus
/// the number of the signal that ended it. If the status is 0, or the command is still running when the recording ends, the exit code reports the
/// outcome of the recording as in the table below.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl record -e 'sched:*' -p 4242 --duration 10s -o /tmp/trace
  tracectl record -e 'net:*' -e '!net:idle' --level '<=info'
  tracectl record -e 'net:received' --filter 'size > 4096 && peer == \"10.*\"' --limit 1000/s
  tracectl record -e '*' -o /tmp/trace -- ./server --port 80
  tracectl record -e '*' --context thread_name,cpu --ring-size 4M
  tracectl record -e '*' --lossless -p 4242 -o /tmp/trace
  tracectl record -e '*' -o /var/tmp/trace --rotate-every 1h --keep 24 -p 4242
  tracectl record -e 'net:*' --dt /var/tmp/newest.dt --dt-slots 1000 -p 4242
  tracectl record -e 'net:*' --udp 127.0.0.1 -p 4242
  tracectl record -e 'net:*' --stream collector.lan --retry 10s -p 4242
  tracectl record -e 'net:*' --relay relay.lan -- ./server
  tracectl record -e 'net:*' -p 4242 --kernel 'sched:sched_switch,block:*' -o /tmp/trace
  tracectl record --kernel 'syscalls:*,!syscalls:*futex' --duration 1s -o /tmp/trace
  tracectl record -e 'shop:*' --waits --duration 10s -o /tmp/trace -p 4242
  tracectl record -e 'shop:*' --waits --samples 99/s --duration 10s -o /tmp/trace -p 4242
  tracectl record -e 'net:*' --on web1,web2,db1 --duration 1m -o /var/tmp/trace
  tracectl record -e '*' --fail-on-loss --duration 1m -o /tmp/trace || echo \"exit code $?\"")]
pub(crate) struct Record {
    /// Accept rules that match no event of the running processes, which wait for processes and modules that come later, and a peer that cannot
    /// be reached yet
    #[arg(long)]
    wait: bool,
    /// Write one JSON object with the counts and outputs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait_arguments: WaitArguments,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    kernel: KernelArguments,
    /// Write CTF traces into DIR, which is empty or does not exist [default: tracepoint-PID in the current directory]
    #[arg(short, long, help_heading = "Outputs", value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    outputs: OutputArguments,
    #[command(flatten)]
    hosts: HostArguments,
    /// Stop after this time [default: at Ctrl-C]
    #[arg(long, help_heading = "End of the recording", value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,
    /// Stop when the traces of all processes together have this size; with `--keep`, the size that they keep
    #[arg(long, help_heading = "End of the recording", value_name = "SIZE", value_parser = units::size, default_value = "1G")]
    max_size: u64,
    #[command(flatten)]
    route: RouteArguments,
    #[command(flatten)]
    channels: ChannelArguments,
    #[command(flatten)]
    budget: BudgetArguments,
    /// End with exit code 4 if any event was lost
    #[arg(long, help_heading = "End of the recording")]
    fail_on_loss: bool,
    /// Record this command and the processes that it starts
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "wait"])]
    command: Vec<String>,
    /// The rights with which the traced processes are accessed. Output is written with the rights of this process
    #[arg(skip)]
    pub(crate) rights: Rights,
    #[arg(skip)]
    side: Side,
}

impl Record {
    /// True if this verb records on other hosts.
    pub(crate) const fn is_on_hosts(&self) -> bool {
        self.hosts.any()
    }

    pub(crate) fn starts_a_command(&self) -> bool {
        !self.command.is_empty()
    }

    pub(crate) fn run(&self) -> VerbResult {
        if self.hosts.any()
            && let Some(option) = self.kernel.option()
        {
            let text =
                format!("`{option}` records this machine, not the hosts of `--on`: run it there, or leave out `--on`");
            return Err(Failure::Usage(text));
        }
        if self.hosts.any() {
            return self.run_on_hosts();
        }
        let rights = &self.rights;
        // First: a failure must not leave anything started or created.
        let mut kernel = rights.as_self(|| self.kernel.open(self.command.is_empty()))?;
        if let Some(kernel) = kernel.take_if(|_| self.is_kernel_alone()) {
            return self.run_kernel(kernel);
        }
        let mut threads = rights.as_self(|| self.kernel.open_threads())?;
        let controller = controller(self.rules.pid)?;
        let process = self.rules.pid.map(|pid| controller.process(pid)).transpose()?;
        let rules = self.route.apply(self.rules.rules_or_all(&controller)?);
        // Every process that is named, or that has not answered, is either recorded or named in the report.
        let mut expected: Vec<Application> = process.iter().cloned().collect();
        let name = format!("record-{}", std::process::id());
        let out = self.output()?;
        rights.as_self(|| self.outputs.require_new_files())?;
        let mut spec = self.spec();
        let mut sinks = self.outputs.sinks(out.as_deref(), self.max_size)?;
        for sink in &mut sinks {
            if let SinkSpec::Stream(sink) = sink {
                sink.stream.wait = self.wait;
            }
        }
        if kernel.is_some() || threads.any() {
            kernel::check(self.kernel.option().unwrap_or_default(), &sinks)?;
        }
        let ages = sinks.iter().filter_map(|sink| Some(sink.stream_settings()?.flush_age()));
        spec.flush_ms = ages.min().map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        spec.check_sinks(&sinks).map_err(|error| ControlError::SessionSpec { session: name.clone(), error })?;
        let failed = |error| ControlError::SessionSpec { session: name.clone(), error };
        spec.check().map_err(failed)?;
        add(&mut spec, &name, &rules)?;
        if !self.wait && self.command.is_empty() {
            require_matches(&controller, &spec, &rules, WaitHint::Option)?;
            require_features(&controller, &spec, WaitHint::Option)?;
        }
        // Before any event is switched on, so that Ctrl-C never leaves one on.
        let mut stop = StopCondition::new(self.duration, process)?;
        if self.side == Side::Remote {
            stop.end_after(remote::wait_for_the_end)?;
        }
        rights.as_self(|| out.as_deref().map_or(Ok(()), |out| self.outputs.make_directory(out)))?;
        let session = controller.create(&name, &spec)?;
        let mut started_kernel = None;
        let begun = (kernel, &mut started_kernel, &mut threads, &mut expected);
        let recorded = self.record(&controller, &session, &spec, sinks, &mut stop, begun);
        let report = recorded.and_then(|(recorder, unrecorded, child)| {
            let timeout = self.wait_arguments.timeout.max(END_TIMEOUT);
            let mut recorded_threads = Default::default();
            // At once: later waits would be those of spans that are not recorded to their ends.
            let finish_threads = || recorded_threads = threads.finish();
            let mut report = report::finish(&session, (recorder, unrecorded), &expected, timeout, finish_threads)?;
            if let Some(kernel) = started_kernel {
                report.add_kernel("kernel", kernel.finish());
            }
            report.add_threads(recorded_threads);
            Ok((report, child))
        });
        // On every path, all events are switched off, and an empty output directory is removed.
        let (report, child) = report.inspect_err(|_| {
            let _ = session.destroy(self.wait_arguments.timeout, false);
            let _ = rights.as_self(|| out.as_ref().map(fs::remove_dir));
        })?;
        self.conclude(&report, out.as_deref(), child)
    }

    fn run_on_hosts(&self) -> VerbResult {
        let out = self.output.clone().map_or_else(default_output, std::path::absolute)?;
        let out = self.outputs.directory(out);
        self.outputs.make_directory(&out)?;
        let end_time = self.wait_arguments.timeout.max(END_TIMEOUT) * 4;
        let result = self.hosts.record(&out, self.max_size, end_time);
        // If it is empty.
        let _ = fs::remove_dir(&out);
        let report = result?;
        // The outcome is that of the recording. An error of the standard output is reported separately, at the end.
        drop(if self.json { report.write_json(&out) } else { report.write_text(&out) });
        Ok(report.outcome())
    }

    /// The absolute path of the CTF directory; `None` if there are only other outputs.
    fn output(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.output {
            Some(output) => Ok(Some(self.outputs.directory(std::path::absolute(output)?))),
            None if self.outputs.any() => Ok(None),
            None => Ok(Some(default_output()?)),
        }
    }

    fn spec(&self) -> SessionSpec {
        let mut spec = SessionSpec::new();
        spec.state = State::Active;
        end_with_this_process(&mut spec);
        (spec.limits.keep_dead, spec.limits.keep_dead_bytes) = (KEEP_DEAD, KEEP_DEAD as u64);
        spec.drain = DrainedBy::Recorder;
        self.channels.apply(&mut spec);
        spec.budget = self.budget.spec();
        if !self.command.is_empty() {
            // The tag is inherited by the command and its child processes.
            spec.tag = Some(spec.id.clone());
        }
        spec
    }

    /// Records the processes, and the kernel if given, until the stop condition is reached. Adds processes that do not answer to
    /// `expected`. Returns the recorder, the processes that it cannot record, and the command, if any.
    fn record(
        &self,
        controller: &Controller,
        session: &NamedSession<'_>,
        spec: &SessionSpec,
        sinks: Vec<SinkSpec>,
        stop: &mut StopCondition,
        (kernel, started_kernel, threads, expected): (
            Option<KernelRecorder>,
            &mut Option<KernelRecording>,
            &mut Threads,
            &mut Vec<Application>,
        ),
    ) -> Result<(Recorder, UnrecordedProcesses, Option<Child>), Failure> {
        let is_bounded = sinks.iter().any(|sink| matches!(sink, SinkSpec::Ctf(_) | SinkSpec::Text(_)))
            && !self.outputs.removes_old_chunks();
        if self.command.is_empty() {
            Recorder::raise_file_limit();
        }
        // Processes that have started are already recorded while others have not answered.
        let of_kernel = if kernel.is_some() || threads.any() { sinks.clone() } else { Vec::new() };
        let recorder = Recorder::start(session, sinks, self.max_size, self.rights.clone())?;
        let waited = session.wait(spec.generation, self.wait_arguments.timeout)?;
        recorder.attach();
        recorder.on_change(stop.waker()?);
        self.require_one_process(&waited, &recorder)?;
        expected.extend(waited.silent);
        let started = kernel.map(|kernel| kernel.start(controller, &of_kernel, self.max_size, &self.rights));
        *started_kernel = started.transpose()?;
        self.rights.as_self(|| threads.start(controller, &of_kernel, self.max_size, &self.rights))?;
        let mut child = command::start(&self.command, controller, spec, self.side)?;
        // After the start of the command, which keeps its original limit.
        Recorder::raise_file_limit();
        let mut line = RecordLine::new(self.starts_a_command());
        let shortest = if line.is_shown() { REFRESH_INTERVAL } else { LOOK_INTERVAL };
        let mut looked: Option<Instant> = None;
        let mut interval = shortest;
        let (mut servers, mut clocks, mut unrecorded) =
            (Servers::default(), FarClocks::default(), UnrecordedProcesses::default());
        // The wait ends on a signal, at the end of the command, or when the recorder has news.
        let mut wait = Duration::ZERO;
        while !stop.is_reached(child.as_mut(), wait)? {
            let progress = recorder.recorded();
            threads.attach(controller, progress.iter().filter_map(|recorded| recorded.process), &self.rights);
            servers.print_new(&progress);
            clocks.print_new(&progress);
            if looked.is_none_or(|looked| looked.elapsed() >= interval) {
                let began = Instant::now();
                if line.is_shown() {
                    session.refresh(self.wait_arguments.timeout)?;
                }
                let mut acks = session.acks()?;
                unrecorded.update(&acks, &recorder);
                RecordedProcesses::new(&recorder.recorded()).add_to(&mut acks);
                line.show(controller, &acks)?;
                interval = shortest.max(began.elapsed() * REFRESH_SHARE);
                looked = Some(began);
            }
            wait = interval.saturating_sub(looked.map_or(Duration::ZERO, |looked| looked.elapsed())).min(LONGEST_WAIT);
            let is_kernel_full = started_kernel.as_ref().is_some_and(KernelRecording::is_full) || threads.is_full();
            if is_bounded && (recorder.is_full() || is_kernel_full) {
                break;
            }
        }
        if let Some(child) = child.as_mut().filter(|_| stop.is_interrupted()) {
            command::terminate(child)?;
        }
        Ok((recorder, unrecorded, child))
    }

    /// Fails if none of the processes can record. Failures of some processes are in the report at the end.
    fn require_one_process(&self, waited: &Acknowledgements, recorder: &Recorder) -> Result<(), Failure> {
        report_silent(&waited.silent);
        waited.acks.iter().for_each(report_notices);
        let mut reasons: Vec<_> = waited.acks.iter().flat_map(unsupported_rules).collect();
        let refused = waited.acks.iter().filter(|ack| ack.state == AckState::Refused);
        let mut refused: Vec<_> = refused.filter_map(refusal).collect();
        let without = recorder.refused();
        refused.extend(without.iter().map(|(process, reason)| format!("process {}: {reason}", process.pid)));
        reasons.extend(refused.iter().cloned());
        let has_no_sinks = |ack: &Ack| without.iter().any(|(process, _)| *process == ack.process);
        let does_nothing = |ack: &Ack| ack.events == 0 || ack.state == AckState::Refused || has_no_sinks(ack);
        let is_hopeless = waited.silent.is_empty() && waited.acks.iter().all(does_nothing);
        if reasons.is_empty() || !is_hopeless || self.wait || !self.command.is_empty() {
            for text in &refused {
                message::note(text);
            }
            return Ok(());
        }
        Err(Failure::Refused(reasons.join("\n")))
    }
}

/// The reason why a process does not record, if any.
fn refusal(ack: &Ack) -> Option<String> {
    Some(of_process(ack, ack.error.as_ref()?))
}

fn default_output() -> io::Result<PathBuf> {
    std::path::absolute(format!("tracepoint-{}", std::process::id()))
}
