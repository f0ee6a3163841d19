//! Writes traces into a store.
//!
//! A trace is read once, packet by packet in the order in which packets begin ([`Trace::visit_packets`]). The rows of each partition are collected in
//! columns up to the size of a row group, so a row group covers a short time. The rows of a packet keep their order; packets of several streams
//! overlap, so the rows of a row group are not sorted by time. [`IngestOptions`] bounds the memory.

mod partitions;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;
use tracepoint_reader::metadata::{EventClass, StreamClass};
use tracepoint_reader::{Damage, EventView, Loss, Packet, Stream, Trace, TraceVisitor};
use tracepoint_tables::{
    AccountRow, HostSession, Layout, LossRow, StreamCounts, StreamState, account_rows, days, identities, last_day,
};

use crate::backend::Transaction;
use crate::error::StoreError;
use crate::store::Store;
use crate::table::TableWriter;
use partitions::{Kind, Partitions};

/// Memory limits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IngestOptions {
    /// Maximum number of rows per row group.
    pub row_group_rows: usize,
    /// Approximate maximum size in bytes of a row group's rows in memory.
    pub row_group_bytes: usize,
    /// Approximate maximum size in bytes of the rows of all partitions in memory. Beyond it, smaller row groups are written.
    pub memory: usize,
    /// Maximum number of open files. Beyond it, a partition gets several files.
    pub open_parts: usize,
}

impl Default for IngestOptions {
    /// Row groups of 122,880 rows or 64 MiB, 256 MiB in total, and 64 files.
    fn default() -> Self {
        Self { row_group_rows: 122_880, row_group_bytes: 64 << 20, memory: 256 << 20, open_parts: 64 }
    }
}

/// Counts of a completed write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IngestSummary {
    /// Events, one row each.
    pub events: u64,
    /// Events lost by the tracer, as far as their number is known.
    pub lost_events: u64,
    /// Losses with an unknown number of events.
    pub losses_of_unknown_size: u64,
    /// Unreadable parts of the trace, and metadata that differs from its checksum; the rest is read nevertheless.
    pub damage: u64,
    /// Packets without a checksum.
    pub unchecked: u64,
    /// Files with events.
    pub parts: u64,
    /// The size of all files, in bytes.
    pub bytes: u64,
}

/// Writes a trace into a store, completely or, after an error, not at all. Calls `progress` with the bytes of packets read so far, and their total.
///
/// # Errors
/// [`StoreError::AlreadyStored`] if the store has the trace or one of its chunks; [`StoreError::GivenTwice`] if the same trace is given twice, for
/// example as a directory and as a dt file; [`StoreError::Io`] and [`StoreError::Parquet`] if the store cannot be written. Damage in the trace is
/// counted; it does not cause an error.
pub fn ingest(
    store: &Store,
    trace: &Trace,
    options: IngestOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<IngestSummary, StoreError> {
    let identities = identities(trace).map_err(StoreError::GivenTwice)?;
    identities.iter().try_for_each(|(identity, _)| store.refuse_known(identity))?;
    let mut ingest = Ingest::new(store, store.backend.begin()?, options);
    trace.metadata_damage().for_each(|damage| ingest.damage(&damage));
    let unchecked = trace.visit_packets(&mut ingest, progress);
    let finished = match ingest.failed.take() {
        Some(error) => Err(error),
        None => ingest.finish(trace),
    };
    match finished {
        Ok(summary) => {
            let last_day = |metadata| {
                last_day(ingest.streams.iter().map(|of| &of.state), metadata).map(days::text).unwrap_or_default()
            };
            let traces: Vec<_> =
                identities.iter().map(|(identity, metadata)| (identity.clone(), last_day(metadata))).collect();
            ingest.transaction.commit(&traces)?;
            Ok(IngestSummary { unchecked, ..summary })
        }
        Err(error) => {
            ingest.transaction.abandon();
            Err(error)
        }
    }
}

/// Writes the items of a trace into a store.
struct Ingest<'a> {
    store: &'a Store,
    transaction: Transaction,
    partitions: Partitions,
    /// By the addresses of the event's and the stream's class.
    kinds: HashMap<(usize, usize), KnownKind>,
    /// By name and layout as text. Traces of the same program share an entry; traces that differ in enumeration labels or in offsets do not.
    shared_kinds: HashMap<String, Arc<Kind>>,
    streams: Vec<StreamEvents>,
    /// By the address of the stream.
    known_streams: HashMap<usize, usize>,
    /// The stream of the packet that began last.
    current: usize,
    losses: HashMap<(HostSession, Option<i64>), TableWriter<LossRow>>,
    summary: IngestSummary,
    failed: Option<StoreError>,
}

/// A stream, and its kinds of events by id.
struct StreamEvents {
    state: StreamState,
    events: HashMap<u64, StreamEvent>,
}

/// A kind of event in one stream.
#[derive(Debug)]
struct StreamEvent {
    kind: Arc<Kind>,
    /// Day and partition of the last event.
    last: Option<(Option<i64>, usize)>,
    /// Number of events stored.
    stored: u64,
}

/// A kind of event. Holds the classes whose addresses are its key.
struct KnownKind {
    kind: Arc<Kind>,
    _class: Arc<EventClass>,
    _stream: Arc<StreamClass>,
}

impl<'a> Ingest<'a> {
    fn new(store: &'a Store, transaction: Transaction, options: IngestOptions) -> Self {
        Self {
            store,
            transaction,
            partitions: Partitions::new(options),
            kinds: HashMap::new(),
            shared_kinds: HashMap::new(),
            streams: Vec::new(),
            known_streams: HashMap::new(),
            current: 0,
            losses: HashMap::new(),
            summary: IngestSummary::default(),
            failed: None,
        }
    }

    fn stream(&mut self, stream: &Arc<Stream>) -> usize {
        let new = self.streams.len();
        let index = *self.known_streams.entry(Arc::as_ptr(stream) as usize).or_insert(new);
        if index == new {
            self.streams.push(StreamEvents { state: StreamState::new(stream), events: HashMap::new() });
        }
        index
    }

    fn kind(&mut self, class: &Arc<EventClass>, stream: &Arc<StreamClass>) -> Result<Arc<Kind>, StoreError> {
        let key = (Arc::as_ptr(class) as usize, Arc::as_ptr(stream) as usize);
        if let Some(known) = self.kinds.get(&key) {
            return Ok(Arc::clone(&known.kind));
        }
        let layout = Layout::of(class, stream);
        let name = self.store.event_name(&class.name, &layout.description())?;
        let shared = self.shared_kinds.entry(format!("{name} {layout:?}"));
        let kind = Arc::clone(shared.or_insert_with(|| Arc::new(Kind { name, layout: Arc::new(layout) })));
        let known = KnownKind { kind: Arc::clone(&kind), _class: Arc::clone(class), _stream: Arc::clone(stream) };
        self.kinds.insert(key, known);
        Ok(kind)
    }

    fn row(&mut self, event: &EventView<'_>) -> Result<(), StoreError> {
        let id = event.class().id;
        if !self.streams[self.current].events.contains_key(&id) {
            let kind = self.kind(event.class(), &event.stream().class)?;
            self.streams[self.current].events.insert(id, StreamEvent { kind, last: None, stored: 0 });
        }
        let StreamEvents { state, events } = &mut self.streams[self.current];
        let head = state.event(event);
        let day = head.ts.map(days::of);
        let Some(slot) = events.get_mut(&id) else { return Ok(()) };
        slot.stored += 1;
        let index = match slot.last {
            Some((known, index)) if known == day => index,
            _ => {
                let index = self.partitions.find(&slot.kind, &state.place, day);
                slot.last = Some((day, index));
                state.last_day = state.last_day.max(day);
                index
            }
        };
        let origin = state.origin(&slot.kind.layout, event);
        self.summary.events += 1;
        self.partitions.push(index, (head, origin), event, &mut self.transaction)
    }

    fn missing(&mut self, place: HostSession, row: LossRow) -> Result<(), StoreError> {
        let day = row.day();
        let writer = self.losses.entry((place, day));
        let writer = writer.or_insert_with_key(|(place, day)| TableWriter::new(&place.directory(*day)));
        writer.push(row, &mut self.transaction)
    }

    /// Writes the remaining rows, and the account.
    fn finish(&mut self, trace: &Trace) -> Result<IngestSummary, StoreError> {
        self.partitions.finish(&mut self.transaction)?;
        let mut summary = std::mem::take(&mut self.summary);
        debug_assert_eq!(self.partitions.written_rows, summary.events);
        (summary.parts, summary.bytes) = (self.partitions.parts, self.partitions.written_bytes);
        for (_, writer) in self.losses.drain() {
            summary.bytes += writer.finish(&mut self.transaction)?;
        }
        summary.bytes += self.account(trace)?;
        Ok(summary)
    }

    /// Writes the account, and returns the total size of its files.
    fn account(&mut self, trace: &Trace) -> Result<u64, StoreError> {
        let streams = std::mem::take(&mut self.streams);
        let counts = |of: &StreamEvents| -> Vec<_> {
            of.events.values().map(|event| (event.kind.name.clone(), event.stored)).collect()
        };
        let names: Vec<_> = streams.iter().map(counts).collect();
        let counts: Vec<_> = streams
            .iter()
            .zip(&names)
            .map(|(of, names)| StreamCounts {
                state: &of.state,
                events: names.iter().map(|(name, count)| (name.as_str(), *count)).collect(),
            })
            .collect();
        let mut name = |class: &_, stream: &_| self.kind(class, stream).map(|kind| kind.name.clone());
        let parts = account_rows(trace, &counts, &mut name);
        drop(counts);
        self.streams = streams;
        let mut writers: HashMap<(HostSession, Option<i64>), TableWriter<AccountRow>> = HashMap::new();
        for part in parts? {
            let writer = writers.entry((part.place, part.day));
            let writer = writer.or_insert_with_key(|(place, day)| TableWriter::new(&place.directory(*day)));
            part.rows.into_iter().try_for_each(|row| writer.push(row, &mut self.transaction))?;
        }
        writers.into_values().map(|writer| writer.finish(&mut self.transaction)).sum()
    }

    /// Runs `action`, unless an earlier action failed.
    fn attempt(&mut self, action: impl FnOnce(&mut Self) -> Result<(), StoreError>) {
        if self.failed.is_none() {
            self.failed = action(self).err();
        }
    }
}

impl TraceVisitor for Ingest<'_> {
    fn loss(&mut self, loss: &Loss) {
        let index = self.stream(&loss.stream);
        let state = &mut self.streams[index].state;
        let row = LossRow::of_loss(state, loss);
        match row.events {
            Some(events) => self.summary.lost_events = self.summary.lost_events.saturating_add(events),
            None => self.summary.losses_of_unknown_size += 1,
        }
        let place = state.place.clone();
        self.attempt(|this| this.missing(place, row));
    }

    fn packet(&mut self, stream: &Arc<Stream>, packet: &Packet) -> ControlFlow<()> {
        self.current = self.stream(stream);
        self.streams[self.current].state.packet(packet);
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        self.attempt(|this| this.row(event));
    }

    fn damage(&mut self, damage: &Damage) {
        self.summary.damage += 1;
        let (place, row) = LossRow::of_damage(self.streams.iter().map(|of| &of.state), damage);
        self.attempt(|this| this.missing(place, row));
    }
}
