//! `record --kernel`: kernel events, alone or together with those of processes.

use super::remote::Side;
use super::report::Report;
use super::stop::StopCondition;
use super::{LONGEST_WAIT, Record, command};
use crate::failure::{Failure, VerbResult};
use crate::session::controller;
use crate::session::rules::RuleArguments;
use crate::units;
use clap::Args;
use std::fs;
use tracepoint_controller::{KernelEvents, KernelRecorder, Recorder};
use tracepoint_session_spec::{SessionSpec, SinkSpec};

const RING_SIZE: usize = 2 << 20;

/// Which events of the kernel.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events of the kernel")]
pub(super) struct KernelArguments {
    /// Record events of the kernel on all CPUs, for all processes: `system:event` with `*`, `?` and `[a-z]`; `!…` excludes events; several are
    /// separated by commas. Without `-e`, nothing else is recorded. Needs root or the rights in docs/kernel.md
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Size of the ring buffer of each CPU for events of the kernel [default: 2M]
    #[arg(long, value_name = "SIZE", requires = "kernel", value_parser = units::size)]
    kernel_ring_size: Option<u64>,
}

impl KernelArguments {
    pub(super) const fn any(&self) -> bool {
        !self.kernel.is_empty()
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
}

/// Fails if events of the kernel cannot be written to one of these outputs.
pub(super) fn check(sinks: &[SinkSpec]) -> Result<(), Failure> {
    match sinks.iter().find(|sink| !matches!(sink, SinkSpec::Ctf(_) | SinkSpec::Dt(_) | SinkSpec::Text(_))) {
        None => Ok(()),
        Some(sink) => Err(Failure::Refused(format!(
            "`--kernel` writes files only, no output of the kind `{}`: record into files (`-o DIR`), in a `record` of its own",
            sink.kind()
        ))),
    }
}

impl Record {
    pub(super) const fn is_kernel_alone(&self) -> bool {
        self.kernel.any() && self.rules.events.is_empty()
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
        check(&sinks)?;
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
        report.add_kernel(recording.finish());
        self.conclude(&report, out.as_deref(), child)
    }
}
