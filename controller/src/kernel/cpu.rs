//! The events on one CPU, their ring buffer, and their counts.

use super::perf::{CpuEvent, RingBuffer, ThreadEvent};
use super::{KernelError, KernelEvents};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tracepoint_reader::kernel::{EventFormat, recorded_thread};
use tracepoint_run_dir::own_process::MappedCode;
use tracepoint_sinks::KernelCounts;

/// A ring buffer wakes the thread when 1/`WAKE_PART` of it is filled.
const WAKE_PART: usize = 4;

#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) number: u32,
    /// The event that owns the ring buffer. If events of all threads are recorded, it is the first of them.
    owner: Arc<CpuEvent>,
    /// The others, in their order.
    others: Vec<CpuEvent>,
    /// Threads whose own events are recorded; no others are then.
    pub(super) threads: Vec<RecordedThread>,
    /// The wake-ups of these threads.
    wakings: Option<CpuEvent>,
    /// The counts of the events of threads that are closed, in the order of the events; and of the closed wake-ups.
    ended: Vec<[u64; 2]>,
    ended_wakings: [u64; 2],
    pub(super) ring: RingBuffer,
    /// True if the CPU is offline by now.
    pub(super) is_gone: bool,
}

/// The events of a thread on one CPU, in their order.
#[derive(Debug)]
pub(super) struct RecordedThread {
    pub(super) pid: u32,
    pub(super) events: Vec<CpuEvent>,
}

/// A thread with its events on each CPU.
#[derive(Debug)]
pub(super) struct AttachedThread {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) events: Vec<Vec<CpuEvent>>,
}

/// What is added to a running recording.
#[derive(Debug)]
pub(super) enum Added {
    Thread(AttachedThread),
    /// The code that is mapped in a process.
    Code(u32, Vec<MappedCode>),
}

impl Cpu {
    /// Opens these events of all threads, with a ring buffer of `size` bytes.
    pub(super) fn open(number: u32, events: &KernelEvents, size: usize) -> Result<Self, KernelError> {
        let open = |(name, format): &(String, EventFormat), first: Option<&CpuEvent>| {
            let failed = |source| KernelError::Open(name.clone(), source);
            CpuEvent::open(format.number, number, size / WAKE_PART, first).map_err(failed)
        };
        let nothing = || KernelError::Thread(io::Error::other("no event is chosen"));
        let (first, others) = events.0.split_first().ok_or_else(nothing)?;
        let mut cpu = Self::owned_by(open(first, None)?, number, size)?;
        // After the ring buffer: an event without one cannot be shared.
        cpu.others = others.iter().map(|event| open(event, Some(&cpu.owner))).collect::<Result<_, _>>()?;
        Ok(cpu)
    }

    /// Opens a ring buffer of `size` bytes for events of threads that are attached later.
    pub(super) fn open_for_threads(number: u32, size: usize) -> Result<Self, KernelError> {
        let failed = |source| KernelError::Open(super::SWITCH.to_owned(), source);
        Self::owned_by(CpuEvent::open_owner(number, size / WAKE_PART).map_err(failed)?, number, size)
    }

    fn owned_by(owner: CpuEvent, number: u32, size: usize) -> Result<Self, KernelError> {
        let failed = |source| KernelError::Ring(number, size, source);
        let ring = RingBuffer::map(&owner, size).map_err(failed)?;
        Ok(Self {
            number,
            owner: Arc::new(owner),
            others: Vec::new(),
            threads: Vec::new(),
            wakings: None,
            ended: Vec::new(),
            ended_wakings: [0; 2],
            ring,
            is_gone: false,
        })
    }

    pub(super) const fn owner(&self) -> &Arc<CpuEvent> {
        &self.owner
    }

    pub(super) fn enable(&self) -> io::Result<()> {
        self.owner.enable()
    }

    pub(super) fn disable(&self) -> io::Result<()> {
        let of_threads = self.threads.iter().flat_map(|thread| &thread.events).chain(&self.wakings);
        of_threads.map(CpuEvent::disable).fold(self.owner.disable(), Result::and)
    }

    /// Records these wake-ups in place of those before.
    pub(super) fn record_wakings(&mut self, event: &ThreadEvent) -> io::Result<()> {
        let opened = CpuEvent::open_in_thread(event, None, self.number, &self.owner)?;
        let Some(before) = self.wakings.replace(opened) else { return Ok(()) };
        let disabled = before.disable();
        add(std::slice::from_mut(&mut self.ended_wakings), [before.counts()?]);
        disabled
    }

    /// Closes the events of processes that have ended. An event of a thread that has ended still counts those of the threads that it started.
    pub(super) fn leave(&mut self, ended: &BTreeSet<u32>) {
        for thread in self.threads.extract_if(.., |thread| ended.contains(&thread.pid)) {
            self.ended.resize(self.ended.len().max(thread.events.len()), [0; 2]);
            // What cannot be read counts as 0: then the account has what was recorded.
            add(&mut self.ended, thread.events.iter().map(|event| event.counts().unwrap_or_default()));
        }
    }

    /// Returns the counts of each of `events`, and the first error. `wakings` is the index of the wake-ups.
    pub(super) fn counts(&self, events: usize, wakings: usize) -> (Vec<KernelCounts>, Option<io::Error>) {
        let (mut sums, mut failed) = (self.ended.clone(), None);
        sums.resize(events, [0; 2]);
        let mut read = |event: &CpuEvent| {
            event.counts().unwrap_or_else(|error| {
                failed.get_or_insert(error);
                [0; 2]
            })
        };
        add(&mut sums, [&*self.owner].into_iter().chain(&self.others).map(&mut read));
        for thread in &self.threads {
            add(&mut sums, thread.events.iter().map(&mut read));
        }
        if let Some(sum) = sums.get_mut(wakings..=wakings) {
            add(sum, self.wakings.iter().map(&mut read));
            add(sum, [self.ended_wakings]);
        }
        (sums.into_iter().map(|[fired, lost]| KernelCounts { fired, lost }).collect(), failed)
    }
}

fn add(sums: &mut [[u64; 2]], counts: impl IntoIterator<Item = [u64; 2]>) {
    for (sum, [fired, lost]) in sums.iter_mut().zip(counts) {
        *sum = [sum[0] + fired, sum[1] + lost];
    }
}

/// Returns the bytes of a record that says that a thread is recorded, with its state and its name; none if it has ended.
pub(super) fn record_of(pid: u32, tid: u32, time: u64) -> Vec<u8> {
    let dir = Path::new("/proc").join(pid.to_string()).join("task").join(tid.to_string());
    let comm = fs::read(dir.join("comm")).unwrap_or_default();
    let Ok(stat) = fs::read(dir.join("stat")) else { return Vec::new() };
    // The state follows the name, which may contain any bytes, in parentheses.
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2)).copied();
    recorded_thread((pid, tid), time, state.unwrap_or(b'X'), comm.trim_ascii_end())
}

/// Returns the online CPUs, from a list such as `0-3,8`.
pub(super) fn online() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    let ranges = ranges.ok_or_else(|| io::Error::other(format!("the list of CPUs is `{text}`")))?;
    Ok(ranges.into_iter().flatten().collect())
}
