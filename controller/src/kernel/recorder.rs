//! Records events of the kernel: a thread moves them from the ring buffers to the sinks.

use super::perf::{CpuEvent, RingBuffer, page_size};
use super::tracefs::KernelEvents;
use super::{KernelError, TRACE};
use crate::controller::Controller;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io;
use std::iter;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use tracepoint_reader::kernel::EventFormat;
use tracepoint_run_dir::ack::Counters;
use tracepoint_run_dir::clock::clock_info;
use tracepoint_run_dir::own_process::hostname;
use tracepoint_run_dir::rights::Rights;
use tracepoint_session_io::outputs::{self, Allowance, LimitReached};
use tracepoint_session_spec::{SinkSpec, random_id};
use tracepoint_sinks::account::Account;
use tracepoint_sinks::own_thread::leave_signals_to_the_program;
use tracepoint_sinks::{Drain, KernelCounts, KernelRings, ProcessInfo, SinkReport, TraceInfo};

/// The thread's name, as `top -H` shows it.
const NAME: &str = "tracepoint-kern";
/// Maximum time that an event stays in its ring buffer.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A ring buffer wakes the thread when 1/`WAKE_PART` of it is filled.
const WAKE_PART: usize = 4;

/// Opened, disabled events of the kernel.
#[derive(Debug)]
pub struct KernelRecorder {
    events: KernelEvents,
    cpus: Vec<Cpu>,
}

#[derive(Debug)]
struct Cpu {
    number: u32,
    /// In the order of the events. All use the first one's ring buffer.
    events: Vec<CpuEvent>,
    ring: RingBuffer,
    /// True if the CPU is offline by now.
    is_gone: bool,
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
        let size = ring_size.clamp(page_size(), 1 << 30).next_power_of_two();
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
        let (clock, _) = clock_info(controller.run_dir());
        let hostname = String::from_utf8_lossy(&hostname()).into_owned();
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        let process = ProcessInfo { hostname, kernel, ..ProcessInfo::default() };
        let trace = TraceInfo { uuid: random_id(), name: TRACE.to_owned(), clock, process };
        let time = clock_gettime(ClockId::Monotonic);
        let began = (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned();
        let Self { events, cpus } = self;
        let mut drain = Drain::kernel(trace, began, events.0);
        let allowance = Allowance::of(max_size);
        let (mut outputs, stop) = (Vec::new(), eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from));
        let made = rights.as_self(|| {
            sinks.iter().try_for_each(|spec| {
                let made = outputs::make(spec, TRACE, Arc::clone(&allowance));
                let (sink, output) = made.map_err(|error| error.to_string())?;
                outputs.push(output);
                drain.add_sink(sink).map(drop).map_err(|error| error.to_string())
            })
        });
        made.map_err(KernelError::Sink)?;
        let stop = Arc::new(stop.map_err(KernelError::Thread)?);
        for first in cpus.iter().filter_map(|cpu| cpu.events.first()) {
            first.enable().map_err(KernelError::Thread)?;
        }
        let (own_stop, own_rights) = (Arc::clone(&stop), rights.clone());
        let body = move || {
            leave_signals_to_the_program();
            own_rights.as_self(|| RecordingThread { cpus, drain, outputs, errors: Vec::new() }.run(&own_stop))
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body).map_err(KernelError::Thread)?;
        Ok(KernelRecording { stop, thread: Some(thread), allowance })
    }
}

impl Cpu {
    fn open(number: u32, events: &KernelEvents, size: usize) -> Result<Self, KernelError> {
        let open = |(name, format): &(String, EventFormat), first: Option<&CpuEvent>| {
            let failed = |source| KernelError::Open(name.clone(), source);
            CpuEvent::open(format.number, number, size / WAKE_PART, first).map_err(failed)
        };
        let nothing = || KernelError::Thread(io::Error::other("no event is chosen"));
        let (first, others) = events.0.split_first().ok_or_else(nothing)?;
        let first = open(first, None)?;
        // An event without a ring buffer cannot be shared.
        let failed = |source| KernelError::Ring(number, size, source);
        let ring = RingBuffer::map(&first, size).map_err(failed)?;
        let others: Vec<_> = others.iter().map(|event| open(event, Some(&first))).collect::<Result<_, _>>()?;
        Ok(Self { number, events: iter::once(first).chain(others).collect(), ring, is_gone: false })
    }
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

    fn end(&mut self) -> Option<KernelRecorded> {
        // A number other than 0 in either byte order; it always fits.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_le_bytes());
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
            self.take(&mut bytes);
            if is_asked_to_stop {
                return self.end(&mut bytes);
            }
        }
    }

    /// Waits until a ring buffer fills up, or for the interval; returns whether the recording has to end.
    fn wait(&mut self, stop: &OwnedFd) -> bool {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        let present = || self.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.is_gone);
        fds.extend(present().filter_map(|(_, cpu)| Some(PollFd::new(cpu.events.first()?, PollFlags::IN))));
        let _ = poll(&mut fds, Some(&INTERVAL));
        let is_gone = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let gone: Vec<_> = present().zip(&fds[1..]).filter(|(_, fd)| is_gone(fd)).map(|((at, _), _)| at).collect();
        let is_asked_to_stop = !fds[0].revents().is_empty();
        drop(fds);
        for at in gone {
            self.cpus[at].is_gone = true;
        }
        is_asked_to_stop
    }

    /// Moves the contents of the ring buffers to the sinks.
    fn take(&mut self, bytes: &mut Vec<u8>) {
        for cpu in &mut self.cpus {
            bytes.clear();
            cpu.ring.take(bytes);
            if let Err(error) = self.drain.add(cpu.number, bytes) {
                let error = format!("CPU {}: {error}", cpu.number);
                if !self.errors.contains(&error) {
                    self.errors.push(error);
                }
            }
        }
        self.drain.drain();
    }

    fn end(mut self, bytes: &mut Vec<u8>) -> KernelRecorded {
        for (number, first) in self.cpus.iter().filter_map(|cpu| Some((cpu.number, cpu.events.first()?))) {
            if let Err(error) = first.disable() {
                self.errors.push(format!("CPU {number}: the events cannot be switched off: {error}"));
            }
        }
        self.take(bytes);
        let (mut counts, mut lost_by_cpu) = (Vec::new(), Vec::new());
        for cpu in &self.cpus {
            let mut count = |event: &CpuEvent| {
                let [fired, lost] = event.counts().unwrap_or_else(|error| {
                    self.errors.push(format!("CPU {}: the counts cannot be read: {error}", cpu.number));
                    [0; 2]
                });
                KernelCounts { fired, lost }
            };
            let here: Vec<_> = cpu.events.iter().map(&mut count).collect();
            let lost = here.iter().map(|counts| counts.lost).sum();
            if lost > 0 {
                lost_by_cpu.push((cpu.number, lost));
            }
            counts.push((cpu.number, here));
        }
        let Self { cpus, drain, outputs, mut errors } = self;
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

/// Returns the online CPUs, from a list such as `0-3,8`.
fn online() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    let ranges = ranges.ok_or_else(|| io::Error::other(format!("the list of CPUs is `{text}`")))?;
    Ok(ranges.into_iter().flatten().collect())
}
