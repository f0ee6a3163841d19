//! `record --kernel`: kernel events, alone or together with those of processes; `--waits` and `--samples`: events of the kernel about their threads.

use super::remote::Side;
use super::report::Report;
use super::stop::StopCondition;
use super::{LONGEST_WAIT, Record, command};
use crate::failure::{Failure, VerbResult};
use crate::session::controller;
use crate::session::rules::RuleArguments;
use crate::{message, units};
use clap::{ArgGroup, Args};
use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU32;
use tracepoint_controller::{
    Controller, KernelError, KernelEvents, KernelRecorded, KernelRecorder, Recorder, ThreadRecorder, ThreadRecording,
};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::Rights;
use tracepoint_session_spec::{SessionSpec, SinkSpec};

const RING_SIZE: usize = 2 << 20;

/// Which events of the kernel.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events of the kernel", group = ArgGroup::new("of_kernel").args(["kernel", "waits", "samples"]).multiple(true))]
pub(super) struct KernelArguments {
    /// Record events of the kernel on all CPUs, for all processes: `system:event` with `*`, `?` and `[a-z]`; `!…` excludes events; several are
    /// separated by commas. Without `-e`, nothing else is recorded. Needs root or the rights in docs/kernel.md
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Size of the ring buffer of each CPU for events of the kernel [default: 2M; for `--waits` and `--samples` 1M, without rights 256K]
    #[arg(long, value_name = "SIZE", requires = "of_kernel", value_parser = units::size)]
    kernel_ring_size: Option<u64>,
    /// Record when the threads of the recorded processes run, and what they wait for, for `tracectl why`. As root or with the rights in
    /// docs/waits.md: switches, wake-ups, system calls in which a thread may wait, block I/O and page faults; as any other user: switches alone
    #[arg(long)]
    waits: bool,
    /// Sample the threads of the recorded processes: record their call stacks, RATE times per second of processor time, such as `99/s`, for
    /// `tracectl export --flame` and `tracectl why`. The programs need frame pointers. As root or with the rights in docs/samples.md, also in the kernel
    #[arg(long, value_name = "RATE", value_parser = units::frequency)]
    samples: Option<NonZeroU32>,
}

impl KernelArguments {
    pub(super) const fn any(&self) -> bool {
        !self.kernel.is_empty()
    }

    /// True if events of the threads of processes are requested.
    pub(super) const fn of_threads(&self) -> bool {
        self.waits || self.samples.is_some()
    }

    /// Returns the option that was given, if any.
    pub(super) fn option(&self) -> Option<&'static str> {
        if self.any() { Some("--kernel") } else { self.of_threads().then(|| self.option_of_threads()) }
    }

    const fn option_of_threads(&self) -> &'static str {
        if self.waits { "--waits" } else { "--samples" }
    }

    /// Opens the requested events, if any. Each takes file descriptors: `many` says that this process may raise its limit on open files.
    pub(super) fn open(&self, many: bool) -> Result<Option<KernelRecorder>, Failure> {
        if !self.any() {
            return Ok(None);
        }
        let events = KernelEvents::select(&self.kernel)?;
        if many {
            Recorder::raise_file_limit();
        }
        let size = self.kernel_ring_size.map_or(RING_SIZE, |size| usize::try_from(size).unwrap_or(usize::MAX));
        Ok(Some(KernelRecorder::open(events, size)?))
    }

    /// Opens a recording of threads, if requested. Says what is not recorded for lack of rights. If nothing can be, the other recordings continue.
    ///
    /// Fails if the kernel does not allow the rate of samples.
    pub(super) fn open_threads(&self) -> Result<Threads, Failure> {
        let mut threads = Threads { option: self.option_of_threads(), ..Threads::default() };
        if !self.of_threads() {
            return Ok(threads);
        }
        let size = self.kernel_ring_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let recorder = match ThreadRecorder::open(self.waits, self.samples, size) {
            Ok(recorder) => recorder,
            Err(error @ KernelError::SampleRate(..)) => return Err(Failure::Usage(format!("--samples: {error}"))),
            Err(error) => {
                threads.failures.push(format!("{}: nothing is recorded: {error}", threads.option));
                return Ok(threads);
            }
        };
        match recorder.missing() {
            _ if !self.waits => {}
            None => message::note(
                "--waits: recording switches of threads, wake-ups, system calls, block I/O and page faults",
            ),
            Some(error) => message::note(&format!(
                "--waits: recording switches of threads; not what they wait for, nor who wakes them, because {error}"
            )),
        }
        if self.samples.is_some() && !recorder.samples_kernel() {
            message::note(
                "--samples: recording what the programs run; nothing while they are in the kernel, which needs the rights in docs/samples.md",
            );
        }
        threads.recorder = Some(recorder);
        Ok(threads)
    }
}

/// The recording of threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// The option that asked for it.
    option: &'static str,
    recorder: Option<ThreadRecorder>,
    recording: Option<ThreadRecording>,
    processes: BTreeSet<ProcessKey>,
    failures: Vec<String>,
}

impl Threads {
    pub(super) const fn any(&self) -> bool {
        self.recorder.is_some()
    }

    pub(super) fn start(
        &mut self,
        controller: &Controller,
        sinks: &[SinkSpec],
        max_size: u64,
        rights: &Rights,
    ) -> Result<(), Failure> {
        let start = |recorder: ThreadRecorder| recorder.start(controller, sinks, max_size, rights);
        self.recording = self.recorder.take().map(start).transpose()?;
        Ok(())
    }

    /// Records the threads of these processes, except for those that are recorded already.
    pub(super) fn attach(
        &mut self,
        controller: &Controller,
        processes: impl Iterator<Item = ProcessKey>,
        rights: &Rights,
    ) {
        let Some(recording) = &self.recording else { return };
        for process in processes {
            if self.processes.insert(process)
                && let Err(error) = rights.as_self(|| recording.attach(controller, process))
            {
                self.failures.push(format!("{}: process {}: {error}", self.option, process.pid));
            }
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.recording.as_ref().is_some_and(ThreadRecording::is_full)
    }

    /// Ends the recording; returns the name of its trace and its counts, and what failed.
    pub(super) fn finish(self) -> (Option<(&'static str, KernelRecorded)>, Vec<String>) {
        (self.recording.map(|recording| (recording.name(), recording.finish())), self.failures)
    }
}

/// Fails if events of the kernel, recorded by this option, cannot be written to one of these outputs.
pub(super) fn check(option: &str, sinks: &[SinkSpec]) -> Result<(), Failure> {
    match sinks.iter().find(|sink| !matches!(sink, SinkSpec::Ctf(_) | SinkSpec::Dt(_) | SinkSpec::Text(_))) {
        None => Ok(()),
        Some(sink) => Err(Failure::Refused(format!(
            "`{option}` writes files only, no output of the kind `{}`: record into files (`-o DIR`), in a `record` of its own",
            sink.kind()
        ))),
    }
}

impl Record {
    pub(super) const fn is_kernel_alone(&self) -> bool {
        self.kernel.any() && self.rules.events.is_empty() && !self.kernel.of_threads()
    }

    pub(super) fn run_kernel(&self, recorder: KernelRecorder) -> VerbResult {
        let rights = &self.rights;
        let controller = controller(self.rules.pid)?;
        let process = self.rules.pid.map(|pid| controller.process(pid)).transpose()?;
        let RuleArguments { level, exe, filter, limit, .. } = &self.rules;
        if level.is_some() || exe.is_some() || filter.is_some() || limit.is_some() {
            let text = "`--level`, `--exe`, `--filter` and `--limit` do not apply to `--kernel`: name events of processes (`-e`) for them";
            return Err(Failure::Usage(text.to_owned()));
        }
        let out = self.output()?;
        rights.as_self(|| self.outputs.require_new_files())?;
        let sinks = self.outputs.sinks(out.as_deref(), self.max_size)?;
        check("--kernel", &sinks)?;
        let mut stop = StopCondition::new(self.duration, process)?;
        rights.as_self(|| out.as_deref().map_or(Ok(()), |out| self.outputs.make_directory(out)))?;
        let recording = recorder.start(&controller, &sinks, self.max_size, rights).inspect_err(|_| {
            let _ = rights.as_self(|| out.as_ref().map(fs::remove_dir));
        })?;
        let mut child = command::start(&self.command, &controller, &SessionSpec::new(), Side::default())?;
        let is_bounded = !self.outputs.removes_old_chunks();
        while !stop.is_reached(child.as_mut(), LONGEST_WAIT)? {
            if is_bounded && recording.is_full() {
                break;
            }
        }
        if let Some(child) = child.as_mut().filter(|_| stop.is_interrupted()) {
            command::terminate(child)?;
        }
        let mut report = Report::default();
        report.add_kernel("kernel", recording.finish());
        self.conclude(&report, out.as_deref(), child)
    }
}
