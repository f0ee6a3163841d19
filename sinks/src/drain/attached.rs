//! A sink of a drain, and the counts of packets that it received.

use super::progress::Progress;
use super::report::{SinkId, SinkReport};
use super::source::TakenPacket;
use crate::account::{Account, Policy};
use crate::description::{ChannelDescription, EventDescription, NewEvents};
use crate::error::SinkError;
use crate::metadata::MetadataText;
use crate::sink::{Rotation, Sink, SinkExtension, StreamInfo};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_ring::channel::{Packet, StreamId};

/// Counts of one stream's packets at a sink.
#[derive(Clone, Debug, Default)]
struct StreamTotals {
    packets: u64,
    records: u64,
    /// Records in packets that the sink did not take.
    lost: u64,
}

/// A sink, and its part of the accounting.
pub(super) struct AttachedSink {
    id: SinkId,
    /// `None` after a panic, because the state of the sink is then unknown.
    sink: Option<Box<dyn Sink>>,
    name: String,
    /// The classes of channels added later.
    channels: Vec<u32>,
    /// The classes and ids of the events described to the sink.
    known: HashSet<(u32, u16)>,
    /// Events that could not be described yet, with their metadata.
    deferred: VecDeque<(Vec<EventDescription>, String)>,
    /// Progress of the streams when the sink was added.
    joined: Progress,
    streams: HashMap<StreamId, StreamTotals>,
    bytes: u64,
    /// True if packets count towards `bytes`.
    keeps_packets: bool,
    /// True if the sink stores the packets.
    stores: bool,
    refused: u64,
    error: Option<SinkError>,
}

impl AttachedSink {
    /// Creates a sink that joins the streams at their current positions.
    pub(super) fn new(id: SinkId, mut sink: Box<dyn Sink>, joined: Progress) -> Self {
        let name = sink.name();
        let keeps_packets = sink.extension().is_none_or(|sink| sink.keeps_packets());
        let stores = sink.extension().is_none_or(|sink| sink.stores());
        Self {
            id,
            sink: Some(sink),
            name,
            channels: Vec::new(),
            known: HashSet::new(),
            deferred: VecDeque::new(),
            joined,
            streams: HashMap::new(),
            bytes: 0,
            keeps_packets,
            stores,
            refused: 0,
            error: None,
        }
    }

    pub(super) const fn id(&self) -> SinkId {
        self.id
    }

    /// Returns the number of bytes that the sink took.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls the sink, unless it has panicked before.
    pub(super) fn call<R>(&mut self, act: impl FnOnce(&mut dyn Sink) -> Result<R, SinkError>) -> Result<R, SinkError> {
        let panicked = |name: &str| SinkError::new(format!("use {name}"), io::Error::other("it panicked"));
        let Some(mut sink) = self.sink.take() else { return Err(panicked(&self.name)) };
        let result = catch_unwind(AssertUnwindSafe(|| act(sink.as_mut()))).map_err(|_| panicked(&self.name))?;
        self.sink = Some(sink);
        result
    }

    /// Calls the extension of the sink. `None` if it has none, or has panicked now or before.
    fn extend<R>(&mut self, act: impl FnOnce(&mut dyn SinkExtension) -> R) -> Option<R> {
        self.call(|sink| Ok(sink.extension().map(act))).unwrap_or_default()
    }

    pub(super) fn close_files(&mut self) {
        let _ = self.extend(|sink| sink.close_files());
    }

    /// Keeps the first error.
    fn note<R>(&mut self, result: Result<R, SinkError>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Describes to the sink those of the events that it does not know. `metadata` is the text of all of them.
    pub(super) fn describe(&mut self, events: &[EventDescription], metadata: &str) -> Result<(), SinkError> {
        let id = |event: &EventDescription| (event.class, event.id);
        let new: Vec<_> = events.iter().filter(|event| !self.known.contains(&id(event))).cloned().collect();
        if new.len() == events.len() {
            self.call(|sink| sink.describe(&NewEvents { events, channels: &[], metadata }))?;
        } else if !new.is_empty() {
            let text = MetadataText::events(&new);
            self.call(|sink| sink.describe(&NewEvents { events: &new, channels: &[], metadata: text.as_str() }))?;
        }
        self.known.extend(new.iter().map(id));
        Ok(())
    }

    /// Describes another channel to the sink, unless it knows it.
    pub(super) fn add_channel(&mut self, channel: &ChannelDescription, metadata: &str) -> Result<(), SinkError> {
        if !self.channels.contains(&channel.class) {
            let channels = std::slice::from_ref(channel);
            self.call(|sink| sink.describe(&NewEvents { events: &[], channels, metadata }))?;
            self.channels.push(channel.class);
        }
        Ok(())
    }

    /// Like [`describe`](Self::describe), but if that fails, it is retried before each packet, and the sink gets no packets until it succeeds.
    pub(super) fn describe_or_defer(&mut self, events: &[EventDescription], metadata: &str) {
        self.deferred.push_back((events.to_vec(), metadata.to_owned()));
        // The error is reported again with the first packet.
        let _ = self.describe_deferred();
    }

    fn describe_deferred(&mut self) -> Result<(), SinkError> {
        while let Some((events, metadata)) = self.deferred.pop_front() {
            if let Err(error) = self.describe(&events, &metadata) {
                self.deferred.push_front((events, metadata));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the sink a packet, preceded by the empty first packet of the stream if necessary.
    pub(super) fn take(&mut self, TakenPacket { stream, packet, first_packet }: &TakenPacket<'_>) {
        let has_begun = self.streams.get(&stream.id).is_some_and(|arrived| arrived.packets > 0);
        let mut given = self.describe_deferred();
        if !has_begun {
            // Without its first packet, a reader could not determine how much of the stream is missing.
            given = given.and_then(|()| self.begin_stream(first_packet, stream));
        }
        if let Err(error) = given.and_then(|()| self.give(stream, packet)) {
            self.streams.entry(stream.id).or_default().lost += packet.events_after - packet.events_before;
            self.refused += 1;
            self.error.get_or_insert(error);
        }
        self.rotate_if_due();
    }

    /// Gives the sink the empty packets with which it joins streams that began before. If it does not take one, this is retried before the stream's
    /// next packet.
    pub(super) fn join(&mut self, channels: &[ChannelDescription]) {
        for id in self.joined.streams() {
            let Some(channel) = channels.iter().find(|channel| channel.class == id.class) else { continue };
            let Some((bytes, records)) = self.joined.joining_packet(id) else { continue };
            let given = self.give_empty(&StreamInfo { id, channel: channel.name.clone() }, &bytes, records);
            self.note(given);
        }
    }

    fn begin_stream(&mut self, first: &dyn Fn() -> Vec<u8>, stream: &StreamInfo) -> Result<(), SinkError> {
        let (bytes, records) = self.joined.joining_packet(stream.id).unwrap_or_else(|| (first(), 0));
        self.give_empty(stream, &bytes, records)
    }

    fn give_empty(&mut self, stream: &StreamInfo, bytes: &[u8], records: u64) -> Result<(), SinkError> {
        self.give(stream, &Packet { stream: stream.id, bytes, events_before: records, events_after: records })
    }

    fn give(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        self.call(|sink| sink.packet(stream, packet))?;
        let arrived = self.streams.entry(stream.id).or_default();
        arrived.packets += 1;
        arrived.records += packet.events_after - packet.events_before;
        self.bytes += if self.keeps_packets { packet.bytes.len() as u64 } else { 0 };
        Ok(())
    }

    /// Rotates the sink if its chunk has reached its maximum size or age.
    pub(super) fn rotate_if_due(&mut self) {
        let rotated = self.extend(|sink| sink.rotate(Rotation::IfDue));
        self.note(rotated.unwrap_or(Ok(None)));
    }

    /// Rotates the sink. Returns the path of the closed chunk.
    pub(super) fn rotate(&mut self) -> Result<Option<PathBuf>, SinkError> {
        self.call(|sink| sink.extension().map_or(Ok(None), |sink| sink.rotate(Rotation::Now)))
    }

    /// Returns whether the sink can be rotated.
    pub(super) fn can_rotate(&mut self) -> bool {
        self.extend(|sink| sink.can_rotate()).unwrap_or(false)
    }

    /// Returns whether packets should stay in the rings for now.
    pub(super) fn is_full(&mut self) -> bool {
        self.extend(|sink| sink.is_full()).unwrap_or(false)
    }

    /// Returns the age at which open packets are to be closed for the sink.
    pub(super) fn flush_age(&mut self) -> Option<Duration> {
        self.extend(|sink| sink.flush_age()).flatten()
    }

    /// Notifies the sink that the drain has polled all rings.
    pub(super) fn round_ended(&mut self, flushed: Option<u64>) {
        self.extend(|sink| sink.round_ended(flushed));
    }

    /// Returns whether the sink wants checkpoints of the account.
    pub(super) fn wants_checkpoints(&mut self) -> bool {
        self.extend(|sink| sink.wants_checkpoints()).unwrap_or(false)
    }

    /// Gives the sink the account so far.
    pub(super) fn checkpoint(&mut self, progress: &Progress, base: Account) {
        let account = self.report(progress, base).account;
        let kept = self.extend(|sink| sink.checkpoint(&account));
        self.note(kept.unwrap_or(Ok(())));
    }

    /// Finishes the sink. The report contains the first error.
    pub(super) fn finish(mut self, progress: &Progress, base: Account) -> SinkReport {
        let account = self.report(progress, base.clone()).account;
        let finished = self.call(|sink| sink.finish(&account));
        self.note(finished);
        // Includes losses of the sink while it finished.
        self.report(progress, base)
    }

    /// Finishes the sink before the recording ends, with the account of its part of the trace. Each stream ends with an empty packet that has the
    /// counters so far, as at the end of a trace.
    pub(super) fn detach(mut self, progress: &Progress, mut base: Account) -> SinkReport {
        progress.cut(&mut base);
        for channel in &base.channels {
            for line in &channel.streams {
                // The id of a channel has 32 bits.
                let id = StreamId { class: channel.id as u32, instance: line.instance };
                let has_begun = self.streams.get(&id).is_some_and(|arrived| arrived.packets > 0);
                let Some((bytes, records)) = progress.leaving_packet(id).filter(|_| has_begun) else { continue };
                let given = self.give_empty(&StreamInfo { id, channel: channel.name.clone() }, &bytes, records);
                self.note(given);
            }
        }
        let mut chunk = self.joined.chunk_from_here().unwrap_or_default();
        (chunk.number, chunk.last, chunk.detached) = (chunk.number.max(1), false, true);
        base.chunk = Some(chunk);
        self.finish(progress, base)
    }

    /// Returns the report of the sink. `base` is the part of the account that all sinks of the drain share.
    pub(super) fn report(&mut self, progress: &Progress, base: Account) -> SinkReport {
        let mut account = base;
        if account.chunk.is_none() {
            account.chunk = self.joined.chunk_from_here();
        }
        for channel in &mut account.channels {
            let class = channel.id as u32;
            for line in &mut channel.streams {
                let id = StreamId { class, instance: line.instance };
                let arrived = self.streams.get(&id).cloned().unwrap_or_default();
                line.before = self.joined.before(id);
                line.packets = arrived.packets;
                line.written = line.before.written + arrived.records;
                line.sink = arrived.lost;
                // Records that never left the ring.
                let missing = progress.missing(id) - self.joined.missing(id);
                let counter = if channel.policy == Policy::Overwrite { &mut line.overwritten } else { &mut line.sink };
                *counter += missing;
            }
        }
        self.extend(|sink| sink.adjust_account(&mut account));
        SinkReport {
            id: self.id,
            name: self.name.clone(),
            bytes: self.bytes,
            packets: self.streams.values().map(|arrived| arrived.packets).sum(),
            refused: self.refused,
            account,
            stores: self.stores,
            error: self.error.clone(),
        }
    }
}
