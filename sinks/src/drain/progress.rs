//! How far each stream has been taken out of its ring.

use crate::account::{Account, Before, Chunk, Removed, StreamAccount};
use crate::accounting::event_entry;
use std::collections::HashMap;
use tracepoint_reader::internal::sealed;
use tracepoint_ring::channel::{HEADER_SIZE, Packet, StreamId};

/// Offsets in the header of a packet, in bytes: see `docs/format-ring.md`.
const TIMESTAMP_BEGIN: usize = 32;
const TIMESTAMP_END: usize = 40;
const CONTENT_SIZE: usize = 48;
const PACKET_SIZE: usize = 56;
const SEQ_NUM: usize = 64;
const EVENTS_DISCARDED: usize = 72;
const EVENTS_BEFORE: usize = 88;

/// How far all streams of a drain are. A sink keeps a copy of the state in which it joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(HashMap<StreamId, StreamProgress>);

#[derive(Clone, Copy, Debug)]
struct StreamProgress {
    /// Records of the stream up to here.
    records: u64,
    /// Those among them that did not come out of the ring: they were overwritten, or their packet was damaged.
    missing: u64,
    /// The header of the last packet.
    header: [u8; HEADER_SIZE],
}

impl Progress {
    /// Notes a packet. Records between it and the packet before it are missing.
    pub(super) fn pass(&mut self, packet: &Packet<'_>) {
        let fresh = StreamProgress { records: 0, missing: 0, header: [0; HEADER_SIZE] };
        let stream = self.0.entry(packet.stream).or_insert(fresh);
        stream.missing += packet.events_before.saturating_sub(stream.records);
        stream.records = packet.events_after;
        if let Some(header) = packet.bytes.first_chunk() {
            stream.header = *header;
        }
    }

    /// All streams, in order.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.0.keys().copied().collect();
        streams.sort_unstable();
        streams
    }

    /// How many records of `stream` did not come out of their ring.
    pub(super) fn missing(&self, stream: StreamId) -> u64 {
        self.0.get(&stream).map_or(0, |stream| stream.missing)
    }

    /// How many records of `stream` came out of their ring, or are missing.
    fn records(&self, stream: StreamId) -> u64 {
        self.0.get(&stream).map_or(0, |stream| stream.records)
    }

    /// The empty packet with which a sink joins `stream` here; `None` if nothing of the stream has been taken yet.
    pub(super) fn joining_packet(&self, stream: StreamId) -> Option<(Vec<u8>, u64)> {
        Some((self.0.get(&stream)?.empty_packet(0), self.records(stream)))
    }

    /// The empty packet with which `stream` ends for a sink that leaves here.
    pub(super) fn leaving_packet(&self, stream: StreamId) -> Option<(Vec<u8>, u64)> {
        Some((self.0.get(&stream)?.empty_packet(1), self.records(stream)))
    }

    /// The chunk of a sink that joined here, which follows the part of the trace before; `None` if nothing was recorded before.
    pub(super) fn chunk_from_here(&self) -> Option<Chunk> {
        let has_content = |stream: &StreamProgress| stream.records > 0 || stream.discarded() > 0;
        self.0.values().any(has_content).then(|| {
            let (mut chunk, mut removed) = (Chunk::default(), Removed::default());
            (removed.chunks, removed.events) = (1, self.0.values().map(|stream| stream.records).sum());
            (chunk.number, chunk.last, chunk.removed) = (2, true, removed);
            chunk
        })
    }

    /// The counters of `stream` at which a sink that joined here begins.
    pub(super) fn before(&self, stream: StreamId) -> Before {
        let mut before = Before::default();
        if let Some(stream) = self.0.get(&stream) {
            (before.recorded, before.written) = (stream.records, stream.records);
            before.discarded = stream.discarded();
        }
        before
    }

    /// Reduces the account of a recording that continues to the packets that were taken up to here. The counters of events are set to zero, because
    /// their values at this point are unknown.
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
        (line.recorded, line.discarded) = (stream.records, stream.discarded());
        Some(line)
    }
}

impl StreamProgress {
    fn word(&self, offset: usize) -> u64 {
        let bytes = self.header.get(offset..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn discarded(&self) -> u64 {
        self.word(EVENTS_DISCARDED)
    }

    /// A packet without records behind the last one, `further` packets after it.
    fn empty_packet(&self, further: u64) -> Vec<u8> {
        let mut packet = self.header.to_vec();
        let bits = (HEADER_SIZE * 8) as u64;
        for (offset, word) in [
            (TIMESTAMP_BEGIN, self.word(TIMESTAMP_END)),
            (CONTENT_SIZE, bits),
            (PACKET_SIZE, bits),
            (SEQ_NUM, self.word(SEQ_NUM) + further),
            (EVENTS_BEFORE, self.records),
        ] {
            packet[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        sealed(packet)
    }
}
