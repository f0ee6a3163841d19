//! Progress of taking each stream out of its ring.

use crate::account::{Account, Chunk, PriorCounts, RemovedChunks, StreamAccount};
use crate::accounting::event_entry;
use std::collections::HashMap;
use tracepoint_reader::internal::sealed;
use tracepoint_ring::channel::{Packet, PacketHeader, StreamId};

/// Progress of all streams of a drain. A sink keeps a copy of the state in which it joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(HashMap<StreamId, StreamProgress>);

#[derive(Clone, Copy, Debug, Default)]
struct StreamProgress {
    /// Number of records of the stream so far.
    records: u64,
    /// Number of those that did not leave the ring: they were overwritten, or their packet was damaged.
    missing: u64,
    /// The header of the last packet.
    last: PacketHeader,
}

impl Progress {
    /// Counts a packet. Records between it and the previous packet are missing.
    pub(super) fn pass(&mut self, packet: &Packet<'_>) {
        let stream = self.0.entry(packet.stream).or_default();
        stream.missing += packet.events_before.saturating_sub(stream.records);
        stream.records = packet.events_after;
        stream.last = PacketHeader::parse(packet.bytes);
    }

    /// Returns all streams, in order.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.0.keys().copied().collect();
        streams.sort_unstable();
        streams
    }

    /// Returns the number of records of `stream` that did not leave their ring.
    pub(super) fn missing(&self, stream: StreamId) -> u64 {
        self.0.get(&stream).map_or(0, |stream| stream.missing)
    }

    /// Returns the number of records of `stream` that left their ring or are missing.
    fn records(&self, stream: StreamId) -> u64 {
        self.0.get(&stream).map_or(0, |stream| stream.records)
    }

    /// Returns the empty packet with which a sink joins `stream` here; `None` if nothing of the stream has been taken yet.
    pub(super) fn joining_packet(&self, stream: StreamId) -> Option<(Vec<u8>, u64)> {
        Some((self.0.get(&stream)?.empty_packet(0), self.records(stream)))
    }

    /// Returns the empty packet with which `stream` ends for a sink that leaves here.
    pub(super) fn leaving_packet(&self, stream: StreamId) -> Option<(Vec<u8>, u64)> {
        Some((self.0.get(&stream)?.empty_packet(1), self.records(stream)))
    }

    /// Returns the chunk of a sink that joined here, which follows the earlier part of the trace; `None` if nothing was recorded before.
    pub(super) fn chunk_from_here(&self) -> Option<Chunk> {
        let has_content = |stream: &StreamProgress| stream.records > 0 || stream.last.discarded > 0;
        self.0.values().any(has_content).then(|| {
            let (mut chunk, mut removed) = (Chunk::default(), RemovedChunks::default());
            (removed.chunks, removed.events) = (1, self.0.values().map(|stream| stream.records).sum());
            (chunk.number, chunk.last, chunk.removed) = (2, true, removed);
            chunk
        })
    }

    /// Returns the counters of `stream` with which a sink that joined here begins.
    pub(super) fn before(&self, stream: StreamId) -> PriorCounts {
        let mut before = PriorCounts::default();
        if let Some(stream) = self.0.get(&stream) {
            (before.recorded, before.written) = (stream.records, stream.records);
            before.discarded = stream.last.discarded;
        }
        before
    }

    /// Reduces the account of a recording that continues to the packets taken so far. The counters of events are set to zero, because their values at
    /// this point are unknown.
    pub(super) fn cut(&self, account: &mut Account) {
        for channel in &mut account.channels {
            // The id of a channel has 32 bits.
            let class = channel.id as u32;
            for event in &mut channel.events {
                *event = event_entry(event.id, &event.name);
            }
            let streams = std::mem::take(&mut channel.streams).into_iter();
            channel.streams = streams.filter_map(|line| self.cut_stream(class, line)).collect();
        }
        account.complete = true;
    }

    fn cut_stream(&self, class: u32, mut line: StreamAccount) -> Option<StreamAccount> {
        let stream = self.0.get(&StreamId { class, instance: line.instance })?;
        (line.recorded, line.discarded) = (stream.records, stream.last.discarded);
        Some(line)
    }
}

impl StreamProgress {
    /// Returns a packet without records, `further` packets after the last one.
    fn empty_packet(&self, further: u64) -> Vec<u8> {
        let PacketHeader { stream, end, sequence, discarded, tid, .. } = self.last;
        let (sequence, events_before) = (sequence.saturating_add(further), self.records);
        let header = PacketHeader { sequence, discarded, tid, events_before, ..PacketHeader::empty(stream, end) };
        sealed(header.bytes()).to_vec()
    }
}
