//! Records events of the threads of processes: their waits, samples of what they run, or both.
//!
//! The kernel stores events of these threads only: each is opened for a thread on each CPU, and inherited by the threads that it starts.

use super::cpu::{Added, AttachedThread, Cpu, online};
use super::perf::{CpuEvent, ThreadEvent};
use super::recorder::{self, KernelRecorded, KernelRecording};
use super::{KernelError, SAMPLE, SAMPLES, WAITS};
use crate::controller::Controller;
use crate::recorder::files;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use tracepoint_reader::kernel::EventFormat;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::own_process::modules_of;
use tracepoint_run_dir::rights::Rights;
use tracepoint_session_spec::SinkSpec;

/// Sizes of the ring buffer of a CPU. An unprivileged user may lock 516 KiB for each by default.
const RING_SIZE: usize = 1 << 20;
const SMALL_RING_SIZE: usize = 256 << 10;

/// What is recorded of each thread.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Names and formats: those that are opened in each thread, then the others.
    described: Vec<(String, EventFormat)>,
    /// How the first ones are opened.
    opened: Vec<ThreadEvent>,
    /// The number of the wake-ups, if they are recorded.
    pub(super) wakings: Option<u16>,
}

/// A recording of threads that has not started.
#[derive(Debug)]
pub struct ThreadRecorder {
    selection: Selection,
    name: &'static str,
    missing: Option<KernelError>,
    samples_kernel: bool,
    cpus: Vec<Cpu>,
}

/// A running recording of threads. Dropping it ends it like [`finish`](Self::finish).
#[derive(Debug)]
pub struct ThreadRecording {
    recording: KernelRecording,
    name: &'static str,
    opened: Vec<(String, ThreadEvent)>,
    /// The number of each CPU, and the event that owns its ring buffer.
    owners: Vec<(u32, Arc<CpuEvent>)>,
    added: Sender<Added>,
}

impl Selection {
    /// Adds an event that is opened in each thread.
    pub(super) fn open(&mut self, name: &str, format: EventFormat, event: ThreadEvent) {
        self.described.insert(self.opened.len(), (name.to_owned(), format));
        self.opened.push(event);
    }

    /// Adds an event that is not opened in each thread.
    pub(super) fn describe(&mut self, name: &str, format: EventFormat) {
        self.described.push((name.to_owned(), format));
    }

    /// Opens the events in the calling thread, and closes them again.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        let cpu = online().map_err(KernelError::Thread)?.first().copied().unwrap_or_default();
        let owner = Cpu::open_for_threads(cpu, SMALL_RING_SIZE)?;
        open(self.named(), 0, (cpu, owner.owner())).1.map_or(Ok(()), Err)
    }

    fn named(&self) -> impl Iterator<Item = (&str, &ThreadEvent)> {
        self.described.iter().map(|(name, _)| name.as_str()).zip(&self.opened)
    }
}

/// Opens the events of a thread on one CPU; 0 is the calling thread. Returns those before the first that cannot be opened, and its error.
fn open<'a>(
    events: impl Iterator<Item = (&'a str, &'a ThreadEvent)>,
    thread: u32,
    (cpu, owner): (u32, &CpuEvent),
) -> (Vec<CpuEvent>, Option<KernelError>) {
    let mut all = Vec::new();
    for (name, event) in events {
        match CpuEvent::open_in_thread(event, Some(thread), cpu, owner) {
            Ok(opened) => all.push(opened),
            Err(source) => return (all, Some(KernelError::Open(name.to_owned(), source))),
        }
    }
    (all, None)
}

impl ThreadRecorder {
    /// Opens ring buffers for the waits of threads, for samples of what they run, or for both, as far as this process has the rights: for each CPU,
    /// one of `ring_size` bytes, rounded up to a power of two of pages. `samples` is their number per second in which a thread runs.
    ///
    /// # Errors
    ///
    /// If not even switches of own processes can be recorded, or no samples; if the kernel does not allow this many samples.
    pub fn open(waits: bool, samples: Option<NonZeroU32>, ring_size: Option<usize>) -> Result<Self, KernelError> {
        let (mut selection, mut missing, mut samples_kernel) = (Selection::default(), None, false);
        if waits {
            selection.add_switches();
            let mut all = Selection::default();
            all.add_switches();
            match all.add_waits() {
                Ok(()) => selection = all,
                Err(error) => missing = Some(error),
            }
        }
        if let Some(rate) = samples {
            samples_kernel = selection.add_samples(rate)?;
        }
        let is_small = missing.is_some() || samples.is_some() && !samples_kernel;
        selection.check()?;
        let size = ring_size.map_or(if is_small { SMALL_RING_SIZE } else { RING_SIZE }, recorder::whole_pages);
        let cpus = online().map_err(KernelError::Thread)?;
        let open = |number| Cpu::open_for_threads(number, size);
        let cpus = cpus.into_iter().map(open).collect::<Result<_, _>>()?;
        let name = if waits { WAITS } else { SAMPLES };
        Ok(Self { selection, name, missing, samples_kernel, cpus })
    }

    /// Returns why only switches are recorded of the waits; `None` if everything is.
    pub const fn missing(&self) -> Option<&KernelError> {
        self.missing.as_ref()
    }

    /// Returns whether threads are also sampled while they are in the kernel, which needs rights.
    pub const fn samples_kernel(&self) -> bool {
        self.samples_kernel
    }

    /// Starts recording into sinks of the kinds `ctf`, `dt` and `text`, of at most `max_size` bytes in total. Each is called `waits`, or
    /// `samples` if these are recorded alone. The run directory of `controller` contains the offset of the clock.
    ///
    /// # Errors
    ///
    /// If a sink or the thread cannot be created.
    pub fn start(
        self,
        controller: &Controller,
        sinks: &[SinkSpec],
        max_size: u64,
        rights: &Rights,
    ) -> Result<ThreadRecording, KernelError> {
        let Self { selection, name, cpus, .. } = self;
        let owners = cpus.iter().map(|cpu| (cpu.number, Arc::clone(cpu.owner()))).collect();
        let opened = selection.named().map(|(name, event)| (name.to_owned(), event.clone())).collect();
        let (added, received) = channel();
        let wakings = selection.wakings;
        let wakings =
            wakings.and_then(|number| selection.described.iter().position(|(_, known)| known.number == number));
        let with = (received, wakings);
        let recording =
            recorder::start((name, selection.described), cpus, with, (controller, sinks, max_size, rights))?;
        Ok(ThreadRecording { recording, name, opened, owners, added })
    }
}

impl ThreadRecording {
    /// Records the threads of a process that has an entry in the run directory of `controller`, and those that they start. A thread that starts
    /// meanwhile may be recorded twice. A process that has ended has none.
    ///
    /// # Errors
    ///
    /// If the process with this id is another one, or of another user than the entry; if a quarter of the descriptors that this process may open
    /// would not stay free for the other recordings; if this process lacks the rights, in which case the threads before are recorded.
    pub fn attach(&self, controller: &Controller, process: ProcessKey) -> Result<(), KernelError> {
        match controller.is_of_entry(process) {
            Some(true) => {}
            Some(false) => return Err(KernelError::OtherProcess),
            None => return Ok(()),
        }
        let pid = process.pid;
        let (needed, room) = (threads(pid).len() * self.opened.len() * self.owners.len(), files::room());
        if needed > room {
            return Err(KernelError::Files(needed, room));
        }
        let mut attached = BTreeSet::new();
        // Again for threads that others have started before these were attached.
        for _ in 0..2 {
            for tid in threads(pid).into_iter().filter(|tid| !attached.contains(tid)).collect::<Vec<_>>() {
                self.attach_thread(controller, process, tid).inspect_err(|_| self.recording.look())?;
                attached.insert(tid);
            }
        }
        if self.opened.iter().any(|(name, _)| name == SAMPLE) {
            // After the threads: a mapping that is made meanwhile is an event of theirs.
            let _ = self.added.send(Added::Code(pid, modules_of(pid)));
        }
        self.recording.look();
        Ok(())
    }

    fn attach_thread(&self, controller: &Controller, process: ProcessKey, tid: u32) -> Result<(), KernelError> {
        let (pid, mut events, mut failed) = (process.pid, Vec::new(), None);
        for (cpu, owner) in &self.owners {
            let named = self.opened.iter().map(|(name, event)| (name.as_str(), event));
            let (opened, error) = open(named, tid, (*cpu, owner));
            // Also if there is an error: they may have stored events, which they count.
            events.push(opened);
            // No thread runs on a CPU that is offline.
            failed = error.filter(
                |error| !matches!(error, KernelError::Open(_, error) if error.raw_os_error() == Some(libc::ENODEV)),
            );
            if failed.is_some() {
                break;
            }
        }
        // A thread that has ended keeps its events, which the threads that it has started have inherited.
        let exists = |path: String| Path::new("/proc").join(path).exists();
        let is_reused = !exists(format!("{pid}/task/{tid}")) && exists(tid.to_string());
        if is_reused || controller.is_of_entry(process) == Some(false) {
            events.iter().flatten().for_each(|event| drop(event.disable()));
        }
        // A failure to receive means that the recording has ended.
        let _ = self.added.send(Added::Thread(AttachedThread { pid, tid, events }));
        match failed {
            Some(KernelError::Open(_, error)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns the name of the trace.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether output was refused because `max_size` is used up.
    pub fn is_full(&self) -> bool {
        self.recording.is_full()
    }

    /// Disables the events, and writes the remaining contents of the ring buffers, and the account.
    pub fn finish(self) -> KernelRecorded {
        self.recording.finish()
    }
}

/// Returns the threads of a process; none if it has ended.
fn threads(pid: u32) -> Vec<u32> {
    let dir = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    dir.filter_map(|entry: io::Result<_>| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
