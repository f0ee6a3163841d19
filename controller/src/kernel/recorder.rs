//! Records events of the kernel: a thread moves them from the ring buffers to the sinks.

use super::cpu::{Added, AttachedThread, Cpu, RecordedThread, online, record_of};
use super::perf::page_size;
use super::tracefs::KernelEvents;
use super::wakings::Wakings;
use super::{KernelError, TRACE};
use crate::controller::Controller;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle};
use tracepoint_reader::kernel::{CodeMapping, EventFormat, recording_ended};
use tracepoint_run_dir::ack::Counters;
use tracepoint_run_dir::clock::clock_info;
use tracepoint_run_dir::own_process::{MappedCode, hostname};
use tracepoint_run_dir::rights::Rights;
use tracepoint_session_io::outputs::{self, Allowance, LimitReached};
use tracepoint_session_spec::{SinkSpec, random_id};
use tracepoint_sinks::account::Account;
use tracepoint_sinks::own_thread::leave_signals_to_the_program;
use tracepoint_sinks::{Drain, KernelRings, ProcessInfo, SinkReport, TraceInfo};

/// The thread's name, as `top -H` shows it.
const NAME: &str = "tracepoint-kern";
/// Maximum time that an event stays in its ring buffer.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Added to the number by which the thread is woken, so that it takes over threads that are attached.
const LOOK: u64 = 1;
/// Added to the number by which the thread is woken, so that it ends the recording.
const STOP: u64 = 1 << 32;

/// Opened, disabled events of the kernel.
#[derive(Debug)]
pub struct KernelRecorder {
    events: KernelEvents,
    cpus: Vec<Cpu>,
}

/// The result of recording the kernel.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KernelRecorded {
    /// The sums over all events.
    pub counters: Counters,
    /// The counts of each event: its name, and how often it fired, was recorded, and was lost.
    pub events: Vec<(String, [u64; 3])>,
    /// The number of events that did not fit into the ring buffer, for each CPU with such events.
    pub lost_by_cpu: Vec<(u32, u64)>,
    /// The paths of the traces.
    pub outputs: Vec<PathBuf>,
    /// The errors. Reaching the maximum size of the recording is not an error.
    pub errors: Vec<String>,
    /// True if sinks have refused packets because the recording has reached its maximum size.
    pub is_full: bool,
}

/// A running recording of the kernel. Dropping it ends it like [`finish`](Self::finish).
#[derive(Debug)]
pub struct KernelRecording {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<KernelRecorded>>,
    allowance: Arc<Allowance>,
}

impl KernelRecorder {
    /// Opens the events on all online CPUs, each with a ring buffer of `ring_size` bytes, rounded up to a power of two of pages. This uses
    /// one descriptor for each event and CPU.
    ///
    /// # Errors
    ///
    /// If this process lacks the rights, descriptors or memory for it, or the kernel is older than Linux 6.0.
    pub fn open(events: KernelEvents, ring_size: usize) -> Result<Self, KernelError> {
        let size = whole_pages(ring_size);
        let cpus = online().map_err(KernelError::Thread)?;
        let cpus = cpus.into_iter().map(|number| Cpu::open(number, &events, size)).collect::<Result<_, _>>()?;
        Ok(Self { events, cpus })
    }

    /// Starts recording into sinks of the kinds `ctf`, `dt` and `text`, each called `kernel`, of at most `max_size` bytes in total. The run
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
    ) -> Result<KernelRecording, KernelError> {
        let Self { events, cpus } = self;
        let (_, none) = channel();
        start((TRACE, events.0), cpus, (none, None), (controller, sinks, max_size, rights))
    }
}

/// Starts the thread that records these events of these CPUs, and of the threads that are `added`, with their wake-ups if the position of these
/// among the events is given, into sinks with this name.
pub(super) fn start(
    (name, events): (&str, Vec<(String, EventFormat)>),
    cpus: Vec<Cpu>,
    (added, wakings): (Receiver<Added>, Option<usize>),
    (controller, sinks, max_size, rights): (&Controller, &[SinkSpec], u64, &Rights),
) -> Result<KernelRecording, KernelError> {
    let (clock, _) = clock_info(controller.run_dir());
    let hostname = String::from_utf8_lossy(&hostname()).into_owned();
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let process = ProcessInfo { hostname, kernel, ..ProcessInfo::default() };
    let trace = TraceInfo { uuid: random_id(), name: name.to_owned(), clock, process };
    let number_of_events = events.len();
    let wakings = wakings.and_then(|index| Some((index, Wakings::new(events.get(index)?.1.number))));
    let mut drain = Drain::kernel(trace, now(), events);
    let allowance = Allowance::of(max_size);
    let (mut outputs, stop) = (Vec::new(), eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from));
    let made = rights.as_self(|| {
        sinks.iter().try_for_each(|spec| {
            let made = outputs::make(spec, name, Arc::clone(&allowance));
            let (sink, output) = made.map_err(|error| error.to_string())?;
            outputs.push(output);
            drain.add_sink(sink).map(drop).map_err(|error| error.to_string())
        })
    });
    made.map_err(KernelError::Sink)?;
    let stop = Arc::new(stop.map_err(KernelError::Thread)?);
    cpus.iter().try_for_each(Cpu::enable).map_err(KernelError::Thread)?;
    let (own_stop, own_rights) = (Arc::clone(&stop), rights.clone());
    let body = move || {
        leave_signals_to_the_program();
        let thread = RecordingThread { cpus, added, wakings, number_of_events, drain, outputs, errors: Vec::new() };
        own_rights.as_self(|| thread.run(&own_stop))
    };
    let thread = Builder::new().name(NAME.to_owned()).spawn(body).map_err(KernelError::Thread)?;
    Ok(KernelRecording { stop, thread: Some(thread), allowance })
}

/// Returns the size of a ring buffer that is not smaller than this one: a power of two of pages.
pub(super) fn whole_pages(size: usize) -> usize {
    size.clamp(page_size(), 1 << 30).next_power_of_two()
}

/// Returns the time of the clock of the events.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
}

impl KernelRecording {
    /// Returns whether output was refused because `max_size` is used up.
    pub fn is_full(&self) -> bool {
        self.allowance.is_used_up()
    }

    /// Disables the events, and writes the remaining contents of the ring buffers, and the account.
    pub fn finish(mut self) -> KernelRecorded {
        self.end().unwrap_or_else(|| {
            let errors = vec!["the thread that records the kernel's events panicked".to_owned()];
            KernelRecorded { errors, ..KernelRecorded::default() }
        })
    }

    /// Wakes the thread, to take over threads that are attached.
    pub(super) fn look(&self) {
        self.wake(LOOK);
    }

    fn wake(&self, value: u64) {
        // The sum always fits: the thread takes it soon.
        let _ = rustix::io::write(&*self.stop, &value.to_le_bytes());
    }

    fn end(&mut self) -> Option<KernelRecorded> {
        self.wake(STOP);
        self.thread.take()?.join().ok()
    }
}

impl Drop for KernelRecording {
    fn drop(&mut self) {
        self.end();
    }
}

struct RecordingThread {
    cpus: Vec<Cpu>,
    added: Receiver<Added>,
    /// The position of wake-ups among the events, and their threads.
    wakings: Option<(usize, Wakings)>,
    number_of_events: usize,
    drain: Drain<KernelRings>,
    outputs: Vec<outputs::Output>,
    errors: Vec<String>,
}

impl RecordingThread {
    /// Records until `stop` is written to.
    fn run(mut self, stop: &OwnedFd) -> KernelRecorded {
        let mut bytes = Vec::new();
        loop {
            let is_asked_to_stop = self.wait(stop);
            self.take(&mut bytes, Vec::new());
            if is_asked_to_stop {
                return self.end(&mut bytes);
            }
            self.follow_new_threads();
        }
    }

    /// Waits until a ring buffer fills up, the recording is woken, or for the interval; returns whether the recording has to end.
    fn wait(&mut self, stop: &OwnedFd) -> bool {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        let present = || self.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.is_gone);
        fds.extend(present().map(|(_, cpu)| PollFd::new(cpu.owner(), PollFlags::IN)));
        let _ = poll(&mut fds, Some(&INTERVAL));
        let is_gone = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let gone: Vec<_> = present().zip(&fds[1..]).filter(|(_, fd)| is_gone(fd)).map(|((at, _), _)| at).collect();
        let is_woken = !fds[0].revents().is_empty();
        drop(fds);
        let mut value = [0; 8];
        let is_asked_to_stop =
            is_woken && rustix::io::read(stop, &mut value).is_ok() && u64::from_le_bytes(value) >= STOP;
        for at in gone {
            self.cpus[at].is_gone = true;
        }
        is_asked_to_stop
    }

    /// Moves the contents of the ring buffers, and `more` records, to the sinks.
    fn take(&mut self, bytes: &mut Vec<u8>, mut more: Vec<u8>) {
        // Their time is later than that of all events that have been taken.
        let added: Vec<_> = self.added.try_iter().collect();
        if added.iter().any(|added| matches!(added, Added::Thread(_))) {
            self.leave_ended_processes();
        }
        more.extend(added.into_iter().flat_map(|added| match added {
            Added::Thread(thread) => self.adopt(thread),
            Added::Code(pid, code) => code.iter().flat_map(|code| mapping(pid, code)).collect(),
        }));
        for cpu in &mut self.cpus {
            bytes.clear();
            cpu.ring.take(bytes);
            bytes.append(&mut more);
            if let Err(error) = self.drain.add(cpu.number, bytes) {
                let error = format!("CPU {}: {error}", cpu.number);
                if !self.errors.contains(&error) {
                    self.errors.push(error);
                }
            }
        }
        self.drain.drain();
    }

    /// Records the wake-ups of the threads that have appeared since the last call.
    fn follow_new_threads(&mut self) {
        let threads = self.drain.take_threads();
        if let Some((_, wakings)) = &mut self.wakings
            && let Err(error) = wakings.add(threads, &mut self.cpus)
        {
            let error = format!("wake-ups of new threads cannot be recorded: {error}");
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
    }

    /// Takes over the events of a thread, and returns a record that says so.
    fn adopt(&mut self, attached: AttachedThread) -> Vec<u8> {
        let AttachedThread { pid, tid, events } = attached;
        for (cpu, events) in self.cpus.iter_mut().zip(events) {
            cpu.threads.push(RecordedThread { pid, events });
        }
        record_of(pid, tid, now())
    }

    /// Closes the events of processes that have ended.
    fn leave_ended_processes(&mut self) {
        let attached: BTreeSet<_> = self.cpus.iter().flat_map(|cpu| &cpu.threads).map(|thread| thread.pid).collect();
        let has_ended = |pid: &u32| !Path::new("/proc").join(pid.to_string()).exists();
        let ended: BTreeSet<_> = attached.into_iter().filter(has_ended).collect();
        if !ended.is_empty() {
            self.cpus.iter_mut().for_each(|cpu| cpu.leave(&ended));
        }
    }

    fn end(mut self, bytes: &mut Vec<u8>) -> KernelRecorded {
        for cpu in &self.cpus {
            if let Err(error) = cpu.disable() {
                self.errors.push(format!("CPU {}: the events cannot be switched off: {error}", cpu.number));
            }
        }
        self.take(bytes, recording_ended(now()));
        let (mut counts, mut lost_by_cpu) = (Vec::new(), Vec::new());
        for cpu in &self.cpus {
            let wakings = self.wakings.as_ref().map_or(usize::MAX, |(index, _)| *index);
            let (here, error) = cpu.counts(self.number_of_events, wakings);
            let failed = |error| format!("CPU {}: the counts cannot be read: {error}", cpu.number);
            self.errors.extend(error.map(failed));
            let lost = here.iter().map(|counts| counts.lost).sum();
            if lost > 0 {
                lost_by_cpu.push((cpu.number, lost));
            }
            counts.push((cpu.number, here));
        }
        let Self { cpus, drain, outputs, mut errors, .. } = self;
        drop(cpus);
        let reports = drain.end(&counts);
        let has_reached_limit = |report: &&SinkReport| report.error.as_ref().is_some_and(LimitReached::is_reason_of);
        let (full, others): (Vec<_>, Vec<_>) = reports.iter().partition(has_reached_limit);
        let failed = |report: &&SinkReport| Some(format!("{}: {}", report.name, report.error.as_ref()?));
        errors.extend(others.iter().filter_map(failed));
        let is_full = !full.is_empty();
        let mut recorded = KernelRecorded { lost_by_cpu, errors, is_full, ..KernelRecorded::default() };
        if let Some(report) = SinkReport::of_most(&reports) {
            recorded.count(&report.account, reports.iter().map(|report| report.bytes).sum());
        }
        recorded.outputs = outputs.iter().filter_map(|output| output.path.clone()).collect();
        recorded
    }
}

/// Returns the bytes of a record with code that is mapped in a process.
fn mapping(pid: u32, code: &MappedCode) -> Vec<u8> {
    let MappedCode { start: address, end, offset, .. } = *code;
    let build_id = code.build_id.as_deref().unwrap_or_default();
    CodeMapping { address, length: end - address, offset, build_id, path: code.path.as_bytes() }.record(pid, now())
}

impl KernelRecorded {
    fn count(&mut self, account: &Account, bytes: u64) {
        self.counters.add_account(account, bytes);
        for channel in &account.channels {
            let counts = channel.events.iter().map(|event| {
                let lost = event.total_lost().unwrap_or(u64::MAX);
                (event.name.clone(), [event.fired, event.recorded, lost])
            });
            self.events.extend(counts);
        }
    }
}
