//! Records when the threads of processes run, and what they wait for.
//!
//! With the rights to record tracepoints, the events are the switches of each thread, its wake-ups, the system calls in which a thread may wait, its
//! block I/O and its major page faults. Without them, they are the switches alone, which any user may record of own processes. The kernel stores
//! events of these threads only: each is opened for a thread on each CPU, and inherited by the threads that it starts.

use super::cpu::{AttachedThread, Cpu, online};
use super::perf::{CpuEvent, ThreadEvent};
use super::recorder::{self, KernelRecorded, KernelRecording};
use super::system_calls;
use super::tracefs::KernelEvents;
use super::{KernelError, SWITCH, WAITS};
use crate::controller::Controller;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use tracepoint_reader::kernel::{EventFormat, Place};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::rights::Rights;
use tracepoint_session_spec::SinkSpec;

/// Names of events that are no tracepoints: a thread is recorded from now on; none is any more; a page fault for which a thread has waited.
const THREAD: &str = "perf:thread";
const END: &str = "perf:end";
const MAJOR_FAULT: &str = "perf:major_fault";
const ENTER: &str = "raw_syscalls:sys_enter";
const EXIT: &str = "raw_syscalls:sys_exit";
const WAKING: &str = "sched:sched_waking";
const TRACEPOINTS: [&str; 5] = ["block:block_bio_queue", ENTER, EXIT, "sched:sched_switch", WAKING];
/// Sizes of the ring buffer of a CPU. An unprivileged user may lock 516 KiB for each by default.
const RING_SIZE: usize = 1 << 20;
const SMALL_RING_SIZE: usize = 256 << 10;

/// What is recorded of each thread.
#[derive(Debug)]
struct Selection {
    /// Names and formats: those that are opened in each thread, [`WAKING`] if there are others than switches, [`THREAD`] and
    /// [`END`].
    described: Vec<(String, EventFormat)>,
    /// How the first ones are opened.
    opened: Vec<ThreadEvent>,
}

/// A recording of threads that has not started.
#[derive(Debug)]
pub struct WaitsRecorder {
    selection: Selection,
    missing: Option<KernelError>,
    cpus: Vec<Cpu>,
}

/// A running recording of threads. Dropping it ends it like [`finish`](Self::finish).
#[derive(Debug)]
pub struct WaitsRecording {
    recording: KernelRecording,
    opened: Vec<(String, ThreadEvent)>,
    /// The number of each CPU, and the event that owns its ring buffer.
    owners: Vec<(u32, Arc<CpuEvent>)>,
    attached: Sender<AttachedThread>,
}

impl Selection {
    fn switches() -> Self {
        let described = [
            (SWITCH, EventFormat::switch()),
            (THREAD, EventFormat::recorded_thread()),
            (END, EventFormat::recording_ended()),
        ];
        let described = described.map(|(name, format)| (name.to_owned(), format)).to_vec();
        Self { described, opened: vec![ThreadEvent::Switch] }
    }

    /// Fails without the rights to record tracepoints.
    fn all() -> Result<Self, KernelError> {
        let filter = system_calls::filter();
        let Self { mut described, mut opened } = Self::switches();
        let mut last = described.split_off(opened.len());
        for (name, mut format) in KernelEvents::select(&TRACEPOINTS)?.0 {
            if name == WAKING {
                format.add_flags();
                last.insert(0, (name, format));
                continue;
            }
            let is_call = [ENTER, EXIT].contains(&name.as_str());
            if is_call {
                format.name_values("id", system_calls::NAMES);
            }
            // The first argument is a descriptor, the address of a futex, or a pointer.
            for field in format.fields.iter_mut().filter(|field| is_call && field.name == "args") {
                if let Place::Fixed { offset, .. } = field.place {
                    field.place = Place::Fixed { offset, size: size_of::<u64>() };
                }
            }
            opened.push(ThreadEvent::Tracepoint(format.number, is_call.then(|| filter.clone())));
            described.push((name, format));
        }
        opened.push(ThreadEvent::MajorFault);
        described.push((MAJOR_FAULT.to_owned(), EventFormat::software()));
        described.append(&mut last);
        let all = Self { described, opened };
        // The files of tracefs may be readable while perf refuses.
        all.check()?;
        Ok(all)
    }

    /// Opens the events in the calling thread, and closes them again.
    fn check(&self) -> Result<(), KernelError> {
        let cpu = online().map_err(KernelError::Thread)?.first().copied().unwrap_or_default();
        let owner = Cpu::open_for_threads(cpu, SMALL_RING_SIZE)?;
        open(self.named(), 0, (cpu, owner.owner())).1.map_or(Ok(()), Err)
    }

    /// The position of the wake-ups; `None` if they are not recorded.
    fn wakings(&self) -> Option<usize> {
        self.described.iter().position(|(name, _)| name == WAKING)
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

impl WaitsRecorder {
    /// Opens ring buffers for the events for which this process has the rights: for each CPU, one of `ring_size` bytes, rounded up to a power of two
    /// of pages.
    ///
    /// # Errors
    ///
    /// If not even switches of own processes can be recorded.
    pub fn open(ring_size: Option<usize>) -> Result<Self, KernelError> {
        let (selection, missing, size) = match Selection::all() {
            Ok(all) => (all, None, RING_SIZE),
            Err(error) => (Selection::switches(), Some(error), SMALL_RING_SIZE),
        };
        selection.check()?;
        let size = ring_size.map_or(size, recorder::whole_pages);
        let cpus = online().map_err(KernelError::Thread)?;
        let open = |number| Cpu::open_for_threads(number, size);
        let cpus = cpus.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { selection, missing, cpus })
    }

    /// Returns why only switches are recorded; `None` if everything is.
    pub const fn missing(&self) -> Option<&KernelError> {
        self.missing.as_ref()
    }

    /// Starts recording into sinks of the kinds `ctf`, `dt` and `text`, each called `waits`, of at most `max_size` bytes in total. The run
    /// directory of `controller` contains the offset of the clock.
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
    ) -> Result<WaitsRecording, KernelError> {
        let Self { selection, cpus, .. } = self;
        let owners = cpus.iter().map(|cpu| (cpu.number, Arc::clone(cpu.owner()))).collect();
        let opened = selection.named().map(|(name, event)| (name.to_owned(), event.clone())).collect();
        let (attached, received) = channel();
        let with = (received, selection.wakings());
        let recording =
            recorder::start((WAITS, selection.described), cpus, with, (controller, sinks, max_size, rights))?;
        Ok(WaitsRecording { recording, opened, owners, attached })
    }
}

impl WaitsRecording {
    /// Records the threads of a process that has an entry in the run directory of `controller`, and those that they start. A thread that starts
    /// meanwhile may be recorded twice. A process that has ended has none.
    ///
    /// # Errors
    ///
    /// If the process with this id is another one, or of another user than the entry; if this process lacks the rights or descriptors. Threads
    /// before are recorded.
    pub fn attach(&self, controller: &Controller, process: ProcessKey) -> Result<(), KernelError> {
        match controller.is_of_entry(process) {
            Some(true) => {}
            Some(false) => return Err(KernelError::OtherProcess),
            None => return Ok(()),
        }
        let pid = process.pid;
        let mut attached = BTreeSet::new();
        // Again for threads that others have started before these were attached.
        for _ in 0..2 {
            for tid in threads(pid).into_iter().filter(|tid| !attached.contains(tid)).collect::<Vec<_>>() {
                self.attach_thread(pid, tid).inspect_err(|_| self.recording.look())?;
                attached.insert(tid);
            }
        }
        self.recording.look();
        Ok(())
    }

    fn attach_thread(&self, pid: u32, tid: u32) -> Result<(), KernelError> {
        let (mut events, mut failed) = (Vec::new(), None);
        for (cpu, owner) in &self.owners {
            let named = self.opened.iter().map(|(name, event)| (name.as_str(), event));
            let (opened, error) = open(named, tid, (*cpu, owner));
            // Also if there is an error: they may have stored events, which they count.
            events.push(opened);
            failed = error;
            if failed.is_some() {
                break;
            }
        }
        // A failure to receive means that the recording has ended.
        let _ = self.attached.send(AttachedThread { pid, tid, events });
        match failed {
            Some(KernelError::Open(_, error)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            Some(error) => Err(error),
            None => Ok(()),
        }
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
