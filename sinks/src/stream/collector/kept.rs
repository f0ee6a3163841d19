//! What outlasts a connection: the packets that are not acknowledged, by stream, and the counters of the session.

use crate::stream::alignment::Alignment;
use crate::stream::delivery::Count;
use crate::stream::queue::{Queue, QueuedPacket};
use crate::stream::stats::LostPackets;
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use tracepoint_ring::channel::StreamId;

/// A packet that was sent at least once.
#[derive(Debug)]
pub(in crate::stream) struct SentPacket {
    /// The number of the packet that was sent before it.
    pub(in crate::stream) prev_seq: u64,
    pub(in crate::stream) packet: QueuedPacket,
}

impl SentPacket {
    pub(super) const fn seq(&self) -> u64 {
        self.packet.header.sequence
    }
}

/// The session, over all its connections.
#[derive(Debug)]
pub(in crate::stream) struct Kept {
    /// Identifies the session.
    pub(super) key: [u8; 16],
    /// The numbers of the last synchronisation point and of the last clock probe.
    pub(super) sync: u64,
    pub(super) probe: u64,
    pub(super) alignment: Alignment,
    /// What a broker has stored.
    #[cfg(feature = "nats")]
    pub(in crate::stream) published: crate::stream::nats::Published,
    streams: BTreeMap<usize, KeptStream>,
    bytes: u64,
    /// Whether packets take room in the queue until they are acknowledged. Without a buffer, those that are kept for repetition do not: the drain would
    /// wait for that room, while the collector waits for a synchronisation point of the drain.
    pub(super) takes_room: bool,
}

/// What of a stream is not acknowledged.
#[derive(Debug)]
struct KeptStream {
    id: StreamId,
    /// The packets that can be sent again.
    packets: VecDeque<Arc<SentPacket>>,
    /// The number and the events of each packet.
    unacknowledged: VecDeque<(u64, u64)>,
}

impl Kept {
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub(in crate::stream) fn new() -> io::Result<Self> {
        let key = random()?;
        Ok(Self {
            key,
            sync: 0,
            probe: 0,
            alignment: Alignment::default(),
            #[cfg(feature = "nats")]
            published: crate::stream::nats::Published::default(),
            streams: BTreeMap::new(),
            bytes: 0,
            takes_room: true,
        })
    }

    /// Bytes of packets that are not acknowledged.
    pub(in crate::stream) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A packet is sent. It is kept for a repetition if `keeps`.
    pub(in crate::stream) fn add(&mut self, stream: usize, packet: &Arc<SentPacket>, keeps: bool) {
        let stream = self.streams.entry(stream).or_insert_with(|| KeptStream {
            id: packet.packet.stream.id,
            packets: VecDeque::new(),
            unacknowledged: VecDeque::new(),
        });
        stream.unacknowledged.push_back((packet.seq(), packet.packet.events()));
        if keeps {
            self.bytes += packet.packet.bytes.len() as u64;
            stream.packets.push_back(Arc::clone(packet));
        }
    }

    pub(in crate::stream) fn get(&self, stream: usize, seq: u64) -> Option<Arc<SentPacket>> {
        let packets = &self.streams.get(&stream)?.packets;
        let index = packets.binary_search_by_key(&seq, |packet| packet.seq()).ok()?;
        packets.get(index).cloned()
    }

    /// The numbers of the packets of a stream that are kept, within these.
    pub(in crate::stream) fn within(&self, stream: usize, first: u64, last: u64) -> Vec<u64> {
        let packets = self.streams.get(&stream).into_iter().flat_map(|stream| &stream.packets);
        packets.map(|packet| packet.seq()).filter(|seq| (first..=last).contains(seq)).collect()
    }

    /// Everything of a stream below `next` is stored: what the collector has given up was removed.
    pub(in crate::stream) fn acknowledge(&mut self, stream: usize, next: u64, queue: &Queue) {
        if let Some((id, stored)) = next.checked_sub(1).and_then(|last| self.take(stream, 0, last, queue)) {
            queue.stored(id, stored);
        }
    }

    /// The collector has given up these packets of a stream.
    pub(super) fn lose(&mut self, stream: usize, first: u64, last: u64, queue: &Queue) {
        if let Some((id, lost)) = self.take(stream, first, last, queue) {
            queue.change(|state| state.deliveries.lose(id, lost, LostPackets::Network));
        }
    }

    /// A stream is complete: nothing of it is sent again.
    pub(super) fn release(&mut self, stream: usize, queue: &Queue) {
        self.take(stream, 0, u64::MAX, queue);
    }

    /// Removes packets with these numbers: their stream, and how many they were.
    fn take(&mut self, stream: usize, first: u64, last: u64, queue: &Queue) -> Option<(StreamId, Count)> {
        let KeptStream { id, packets, unacknowledged } = self.streams.get_mut(&stream)?;
        let of = |numbers: &VecDeque<(u64, u64)>, seq| numbers.partition_point(|(number, _)| *number < seq);
        let end = last.checked_add(1).map_or(unacknowledged.len(), |end| of(unacknowledged, end));
        let mut count = Count::default();
        for (_, events) in unacknowledged.drain(of(unacknowledged, first).min(end)..end) {
            count.add(Count::packet(events));
        }
        let begin = packets.partition_point(|packet| packet.seq() < first);
        let end = last.checked_add(1).map_or(packets.len(), |end| packets.partition_point(|packet| packet.seq() < end));
        for packet in packets.drain(begin.min(end)..end) {
            self.bytes = self.bytes.saturating_sub(packet.packet.bytes.len() as u64);
            if self.takes_room {
                queue.finished(&packet.packet);
            }
        }
        Some((*id, count))
    }
}

/// Random bytes that cannot be guessed.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
