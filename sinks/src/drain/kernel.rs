//! Kernel events: converts the records of perf ring buffers, one per CPU, to packets.
//!
//! ```text
//!   bytes of the buffer of one CPU ──add()──▶ in the order of time ──▶ records ──▶ packets of the stream of that CPU ──drain()──▶ sinks
//! ```
//!
//! A stream has the number of its CPU. The context of each event is the process and the thread that were running when it fired, as reported by the
//! kernel; 0 is the idle thread.
//!
//! The kernel reads the time of an event before it reserves space in the buffer, so that an interrupt in between stores a later event first. Events
//! that are added together are sorted by time. If one is still earlier than the event before it, it gets that event's time, and the account counts it
//! as `clamped`.

mod encode;

use super::report::SinkReport;
use super::source::{DrainRound, PacketSource, TakenPacket};
use super::{Drain, deliver, finish};
use crate::account::{Account, StreamAccount};
use crate::accounting::{channel_entry, event_entry};
use crate::description::{ChannelDescription, EventDescription};
use crate::metadata::MetadataText;
use crate::sink::StreamInfo;
use crate::trace_info::TraceInfo;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tracepoint_reader::internal::sealed;
use tracepoint_reader::kernel::{EventFormat, MalformedRecord, PerfRecord, PerfRecords, Sample};
use tracepoint_ring::Level;
use tracepoint_ring::channel::{HEADER_SIZE, Loss, Packet, PacketHeader, Policy, StreamId, StreamKey};

/// The stream class of all streams, and its name.
const CLASS: u32 = 0;
const CHANNEL: &str = "kernel";
/// Reason for losing an event that the kernel has counted, but neither stored nor counted as lost. Some kernels do that now and then in interrupts.
const NOT_STORED: &str = "not_stored";
/// A packet is closed at this size, in bytes; it is also the maximum size of a kernel record.
const FULL: usize = 64 << 10;

/// The kernel's counts of one event on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Number of times it fired, or the sum of its weights.
    pub fired: u64,
    /// Number of times it did not fit into the ring buffer.
    pub lost: u64,
}

/// A recorded kernel event.
#[derive(Debug)]
struct KernelEvent {
    name: String,
    format: EventFormat,
    /// Sums over all CPUs.
    sums: Sums,
}

/// Counts of an event. [`KernelRings::account`] may read them before they are final.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    fired: u64,
    recorded: u64,
    lost: u64,
    not_stored: u64,
}

/// An event on one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct OnCpu {
    recorded: u64,
    /// True if it has a weight, so that the kernel's counter does not give the number of times it fired.
    is_weighted: bool,
}

/// The stream of one CPU.
#[derive(Debug)]
struct Cpu {
    recorded: u64,
    discarded: u64,
    /// The number of the last packet.
    sequence: u64,
    /// The time of the last event, or of the beginning of the recording.
    last: u64,
    /// By event id.
    events: Vec<OnCpu>,
}

impl Cpu {
    const fn new(began: u64) -> Self {
        Self { recorded: 0, discarded: 0, sequence: 0, last: began, events: Vec::new() }
    }
}

/// A packet that waits for the sinks.
#[derive(Debug)]
struct WaitingPacket {
    cpu: u32,
    bytes: Vec<u8>,
    events_before: u64,
    events_after: u64,
}

/// The kernel's ring buffers, which the owner of the drain reads.
#[derive(Debug)]
pub struct KernelRings {
    trace: TraceInfo,
    /// When the recording began.
    began: u64,
    /// The events, by their ids in the trace; and these ids, by the kernel's numbers.
    events: Vec<KernelEvent>,
    ids: HashMap<u16, u16>,
    cpus: BTreeMap<u32, Cpu>,
    waiting: Vec<WaitingPacket>,
    clamped: u64,
    /// Threads with switches among the samples, since they were taken.
    threads: BTreeSet<u32>,
}

impl PacketSource for KernelRings {
    const PACKET_DELAY: Duration = Duration::from_millis(800);

    fn flushed(&self) -> Option<u64> {
        None
    }

    fn limit_flush_age(&mut self, _: Duration) {}

    fn trace(&self) -> &TraceInfo {
        &self.trace
    }

    fn channels(&self) -> Vec<ChannelDescription> {
        vec![ChannelDescription {
            class: CLASS,
            name: CHANNEL.to_owned(),
            policy: Policy::Discard,
            packet_size: 2 * FULL,
            context: encode::CONTEXT.to_vec(),
        }]
    }

    fn closes_old_packets(&self) -> bool {
        true
    }

    fn close_packets(&mut self) {}

    fn take(&mut self, deliver: Option<&mut dyn FnMut(&TakenPacket<'_>)>) -> DrainRound {
        let Some(deliver) = deliver else { return DrainRound::default() };
        let mut drained = DrainRound::default();
        for waiting in std::mem::take(&mut self.waiting) {
            drained.packets += 1;
            drained.bytes += waiting.bytes.len() as u64;
            let id = StreamId { class: CLASS, instance: waiting.cpu.into() };
            let WaitingPacket { bytes, events_before, events_after, .. } = &waiting;
            deliver(&TakenPacket {
                stream: StreamInfo { id, channel: CHANNEL.to_owned() },
                packet: Packet { stream: id, bytes, events_before: *events_before, events_after: *events_after },
                first_packet: &|| sealed(self.empty(waiting.cpu, 0).bytes()).to_vec(),
            });
        }
        drained
    }

    fn account(&self, _: &[EventDescription]) -> Account {
        let mut account = Account::new(self.trace.uuid, self.trace.name.clone(), self.trace.process.pid);
        account.notes.clamped = self.clamped;
        let mut channel = self.channels().first().map(channel_entry).unwrap_or_default();
        for (id, event) in self.events.iter().enumerate() {
            let mut entry = event_entry(id as u64, &event.name);
            let Sums { fired, recorded, lost, not_stored } = event.sums;
            (entry.fired, entry.recorded) = (fired, recorded);
            let lost =
                [(Loss::RingFull.name(), lost), (NOT_STORED, not_stored)].into_iter().filter(|(_, count)| *count > 0);
            entry.lost = lost.map(|(reason, count)| (reason.to_owned(), count)).collect();
            channel.events.push(entry);
        }
        for (number, cpu) in self.cpus.iter().filter(|(_, cpu)| cpu.recorded > 0 || cpu.discarded > 0) {
            let mut stream = StreamAccount::default();
            (stream.instance, stream.recorded, stream.discarded) = ((*number).into(), cpu.recorded, cpu.discarded);
            channel.streams.push(stream);
        }
        account.channels.push(channel);
        account
    }
}

impl KernelRings {
    /// Returns the header of an empty packet of this CPU with this number; number 0 begins the stream.
    fn empty(&self, number: u32, sequence: u64) -> PacketHeader {
        let stream = StreamKey { uuid: self.trace.uuid, class: CLASS, instance: number.into() };
        let at_begin = Cpu::new(self.began);
        let cpu = self.cpus.get(&number).filter(|_| sequence > 0).unwrap_or(&at_begin);
        let (discarded, events_before) = (cpu.discarded, cpu.recorded);
        PacketHeader { sequence, discarded, tid: number, events_before, ..PacketHeader::empty(stream, cpu.last) }
    }

    /// Creates the next packet of this CPU from these samples.
    fn put(&mut self, number: u32, samples: &[(u16, Sample<'_>)]) {
        let cpu = self.cpus.entry(number).or_insert(Cpu::new(self.began));
        let events_before = cpu.recorded;
        cpu.events.resize(self.events.len(), OnCpu::default());
        let mut bytes = vec![0; HEADER_SIZE];
        let mut begin = None;
        for (id, sample) in samples {
            self.clamped += u64::from(sample.time < cpu.last);
            cpu.last = cpu.last.max(sample.time);
            begin.get_or_insert(cpu.last);
            if let Some(event) = self.events.get_mut(usize::from(*id)) {
                encode::record(&mut bytes, (*id, cpu.last), sample, &event.format);
                event.sums.recorded += 1;
                cpu.recorded += 1;
                let on_cpu = &mut cpu.events[usize::from(*id)];
                on_cpu.recorded += 1;
                on_cpu.is_weighted |= sample.weight != 1;
            }
        }
        cpu.sequence += 1;
        let (sequence, events_after) = (cpu.sequence, cpu.recorded);
        let header = PacketHeader { events_before, ..self.empty(number, sequence) }.with_size(bytes.len());
        PacketHeader { begin: begin.unwrap_or(header.end), ..header }.write_to(&mut bytes);
        self.waiting.push(WaitingPacket { cpu: number, bytes: sealed(bytes), events_before, events_after });
    }
}

impl Drain<KernelRings> {
    /// Creates a drain of the kernel's ring buffers, without sinks, for a recording that begins at the time `began`. The ids of the events in the
    /// trace are their positions in `events`, each with a name and a format; events beyond 65,536 are ignored.
    pub fn kernel(trace: TraceInfo, began: u64, events: Vec<(String, EventFormat)>) -> Self {
        let events: Vec<_> = events.into_iter().zip(0..=u16::MAX).map(|(event, _)| event).collect();
        let ids = events.iter().zip(0..).map(|((_, format), id)| (format.number, id)).collect();
        let describe = |(id, (name, format)): (u16, &(String, EventFormat))| EventDescription {
            class: CLASS,
            id,
            name: name.clone(),
            level: Level::Info,
            fields: encode::descriptors(format),
            doc: "",
            format: "",
        };
        let descriptions: Vec<_> = (0..).zip(&events).map(describe).collect();
        let (cpus, waiting) = (BTreeMap::new(), Vec::new());
        let sums = Sums::default();
        let events = events.into_iter().map(|(name, format)| KernelEvent { name, format, sums }).collect();
        let source = KernelRings { trace, began, events, ids, cpus, waiting, clamped: 0, threads: BTreeSet::new() };
        let first = MetadataText::begin(&source.trace, &source.channels());
        let metadata = first.as_str().to_owned() + MetadataText::events(&descriptions).as_str();
        Self::of(source, descriptions, metadata)
    }

    /// Adds the contents of a CPU's ring buffer; the next [`drain`](Self::drain) moves them.
    ///
    /// # Errors
    ///
    /// If some of the bytes are not valid records. Records before them are added.
    pub fn add(&mut self, cpu: u32, bytes: &[u8]) -> Result<(), MalformedRecord> {
        let (mut samples, mut lost, mut result) = (Vec::new(), 0_u64, Ok(()));
        for record in PerfRecords::new(bytes) {
            match record {
                Ok(PerfRecord::Sample(sample)) => {
                    if sample.is_of_recorded_thread() {
                        self.source.threads.insert(sample.tid);
                    }
                    samples.extend(self.source.ids.get(&sample.number()).map(|id| (*id, sample)));
                }
                Ok(PerfRecord::Lost(count)) => lost = lost.saturating_add(count),
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
        samples.sort_by_key(|(_, sample)| sample.time);
        let began = Cpu::new(self.source.began);
        let discarded = &mut self.source.cpus.entry(cpu).or_insert(began).discarded;
        *discarded = discarded.saturating_add(lost);
        let (mut rest, mut size) = (&samples[..], 0);
        while let Some(count) = rest.iter().position(|(_, sample)| {
            size += sample.raw.len();
            size >= FULL
        }) {
            let (now, later) = rest.split_at(count.max(1));
            self.source.put(cpu, now);
            (rest, size) = (later, 0);
        }
        if !rest.is_empty() {
            self.source.put(cpu, rest);
        }
        result
    }

    /// Takes the threads whose switches were added since the last call.
    pub fn take_threads(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.source.threads)
    }

    /// Moves everything that was added, with an empty packet at the end of each stream, and finishes the sinks. `counts` has the kernel's final
    /// counts for each CPU, by event id.
    pub fn end(self, counts: &[(u32, Vec<KernelCounts>)]) -> Vec<SinkReport> {
        let Self { mut source, events: descriptions, mut sinks, mut progress, .. } = self;
        for (number, counts) in counts {
            let cpu = source.cpus.entry(*number).or_insert(Cpu::new(source.began));
            cpu.events.resize(source.events.len(), OnCpu::default());
            cpu.discarded = 0;
            for ((event, on_cpu), counts) in source.events.iter_mut().zip(&cpu.events).zip(counts) {
                let known = on_cpu.recorded + counts.lost;
                let fired = if on_cpu.is_weighted || event.format.is_sample() { known } else { counts.fired };
                let not_stored = fired.saturating_sub(known);
                event.sums.fired += fired;
                event.sums.lost += counts.lost;
                event.sums.not_stored += not_stored;
                cpu.discarded += counts.lost + not_stored;
            }
        }
        let ended: Vec<_> = source.cpus.iter().filter(|(_, cpu)| cpu.sequence > 0 || cpu.discarded > 0).collect();
        let last = |(number, cpu): (&u32, &Cpu)| WaitingPacket {
            cpu: *number,
            bytes: sealed(source.empty(*number, cpu.sequence + 1).bytes()).to_vec(),
            events_before: cpu.recorded,
            events_after: cpu.recorded,
        };
        let last: Vec<_> = ended.into_iter().map(last).collect();
        source.waiting.extend(last);
        let mut hand_out = |taken: &TakenPacket<'_>| deliver(taken, &mut progress, &mut sinks);
        source.take(Some(&mut hand_out));
        let mut account = source.account(&descriptions);
        account.complete = true;
        finish(sinks, &progress, &account)
    }
}
