//! One program, recorded by one system.

use crate::load::{Load, Mark};
use crate::processes::{self, Memory, Pid, processor_time, processor_times};
use crate::program::Program;
use crate::system::{Recording, System};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use tracepoint_peers::peer::babeltrace;
use tracepoint_peers::tally;

/// Traces with at most this number of events are read back by babeltrace2, to check the counts reported by systems.
const READ_BACK: u64 = 60_000;

/// A trial that runs.
pub(crate) struct Trial {
    system: System,
    recording: Box<dyn Recording>,
    program: Program,
    place: TempDir,
    shared_before: u64,
    fired: u64,
}

/// The outcome of the events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) fired: u64,
    pub(crate) lost: u64,
}

/// Processor time in the program and in other processes, so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) program: Duration,
    pub(crate) consumer: Duration,
}

/// The cost of an idle program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    /// Number of times per second that threads go to sleep and wake up.
    pub(crate) program_wakes: f64,
    pub(crate) consumer_wakes: f64,
    pub(crate) program: Memory,
    pub(crate) consumer: Memory,
    /// The growth of all shared memory since before the program started, in KiB.
    pub(crate) shared: u64,
}

impl Trial {
    /// Starts a program and its recording. Files are in memory, because disks are not measured.
    pub(crate) fn start(system: System, tracectl: &Path) -> Result<Self> {
        let shared_before = processes::shared()?;
        let place = TempDir::with_prefix_in("tracepoint-peers-", "/dev/shm")?;
        let run_directory = place.path().join("run");
        let mut program = Program::start(system, &run_directory)?;
        let recording = system.record(program.pid(), tracectl, &run_directory, &output(&place))?;
        // An empty load waits until the event is on.
        program.run(&Load::default(), |_| Ok(()))?;
        Ok(Self { system, recording, program, place, shared_before, fired: 0 })
    }

    /// Runs a load, and calls `at_mark` after the pause and after each phase.
    pub(crate) fn run(&mut self, load: &Load, mut at_mark: impl FnMut(Mark, Spent) -> Result<()>) -> Result<()> {
        let consumers = self.recording.consumers()?;
        let program = self.program.pid();
        let fired = &mut self.fired;
        self.program.run(load, |mark| {
            *fired += mark.events;
            let spent = Spent { program: processor_time(program)?, consumer: processor_times(&consumers)? };
            at_mark(mark, spent)
        })
    }

    /// Watches the program while nothing happens.
    pub(crate) fn idle(&self, time: Duration) -> Result<Idle> {
        let (program, consumers) = ([self.program.pid()], self.recording.consumers()?);
        let sleeps = |pids: &[Pid]| processes::sleeps(pids);
        let before = (sleeps(&program)?, sleeps(&consumers)?);
        thread::sleep(time);
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / time.as_secs_f64();
        Ok(Idle {
            program_wakes: per_second(sleeps(&program)?, before.0),
            consumer_wakes: per_second(sleeps(&consumers)?, before.1),
            program: processes::memory(&program)?,
            consumer: processes::memory(&consumers)?,
            shared: processes::shared()?.saturating_sub(self.shared_before),
        })
    }

    /// Ends the recording and the program.
    pub(crate) fn stop(mut self) -> Result<Outcome> {
        let lost = self.recording.stop()?;
        let kept = self.program.end()?;
        let lost = lost.or_else(|| Some(self.fired.saturating_sub(kept?))).unwrap_or_default();
        let outcome = Outcome { fired: self.fired, lost };
        let is_trace = matches!(self.system, System::Session | System::Record | System::Lttng);
        if is_trace && self.fired > 0 && self.fired <= READ_BACK {
            tally::take();
            babeltrace::add_to_tally(&output(&self.place), &["{ a = ", ", b = ", ", c = "], false);
            let found = tally::take().count;
            ensure!(found == outcome.kept(), "{}: {found} events in the trace, {outcome:?}", self.system.name());
        }
        Ok(outcome)
    }
}

/// The directory of the trace.
fn output(place: &TempDir) -> PathBuf {
    place.path().join("trace")
}

impl Outcome {
    pub(crate) fn kept(self) -> u64 {
        self.fired.saturating_sub(self.lost)
    }
}
