//! State that outlives a connection: the unacknowledged packets by stream, and the counters of the session.

use crate::stream::alignment::Alignment;
use crate::stream::delivery::Count;
use crate::stream::queue::{Queue, QueuedPacket};
use crate::stream::streams::SentStream;
use crate::stream_stats::LostPackets;
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use tracepoint_ring::channel::StreamId;
use tracepoint_wire::stream::NO_SEQ;

/// A packet that was sent at least once.
#[derive(Debug)]
pub(in crate::stream) struct SentPacket {
    /// The number of the packet sent before it.
    pub(in crate::stream) prev_seq: u64,
    pub(in crate::stream) packet: QueuedPacket,
}

impl SentPacket {
    /// The packet that is sent of a stream behind its last one.
    pub(in crate::stream) fn next(sent: &mut SentStream, packet: QueuedPacket) -> Arc<Self> {
        let prev_seq = sent.last.map_or(NO_SEQ, |last| last.sequence);
        sent.last = Some(packet.header);
        sent.packets += 1;
        sent.events_after = packet.events_after;
        Arc::new(Self { prev_seq, packet })
    }

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
    /// Progress of publishing to a broker.
    #[cfg(feature = "nats")]
    pub(in crate::stream) published: crate::stream::nats::Published,
    streams: BTreeMap<usize, KeptStream>,
    bytes: u64,
    /// Set if packets count against the queue's limit until they are acknowledged. Not so without a resend buffer: the drain would wait for that
    /// room, while the collector waits for a synchronisation point of the drain.
    pub(super) takes_room: bool,
}

/// The unacknowledged packets of a stream.
#[derive(Debug)]
struct KeptStream {
    id: StreamId,
    /// The packets that can be sent again.
    packets: VecDeque<Arc<SentPacket>>,
    unacknowledged: VecDeque<UnackedRange>,
    /// The number after that of the last packet given up from the combined entry. A collector gives packets up in order, and may report them again on
    /// a new connection.
    given_up: u64,
}

/// Counts of one packet, or of the oldest ones combined.
#[derive(Debug)]
struct UnackedRange {
    first: u64,
    last: u64,
    count: Count,
}

/// Maximum number of entries per stream. Beyond it, the oldest ones are combined into one, which is acknowledged as a whole.
const MAX_UNACKNOWLEDGED: usize = 8192;
/// Maximum number of empty packets kept for a stream without a resend buffer. A collector mostly requests the last one.
const MAX_EMPTY: usize = 64;

impl Kept {
    /// Creates the state of a new session.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
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

    /// Returns the size of the unacknowledged packets in bytes.
    pub(in crate::stream) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a packet that is sent. It is kept for retransmission if `keeps`.
    pub(in crate::stream) fn add(&mut self, stream: usize, packet: &Arc<SentPacket>, keeps: bool) {
        let stream = self.streams.entry(stream).or_insert_with(|| KeptStream {
            id: packet.packet.stream.id,
            packets: VecDeque::new(),
            unacknowledged: VecDeque::new(),
            given_up: 0,
        });
        let (seq, count) = (packet.seq(), Count::packet(packet.packet.events()));
        stream.unacknowledged.push_back(UnackedRange { first: seq, last: seq, count });
        if stream.unacknowledged.len() > MAX_UNACKNOWLEDGED
            && let (Some(oldest), Some(next)) = (stream.unacknowledged.pop_front(), stream.unacknowledged.front_mut())
        {
            next.first = oldest.first;
            next.count.add(oldest.count);
        }
        if keeps {
            self.bytes += packet.packet.bytes.len() as u64;
            stream.packets.push_back(Arc::clone(packet));
        }
        if !self.takes_room && stream.packets.len() > MAX_EMPTY {
            let oldest = stream.packets.pop_front();
            self.bytes -= oldest.map_or(0, |packet| packet.packet.bytes.len() as u64);
        }
    }

    pub(in crate::stream) fn get(&self, stream: usize, seq: u64) -> Option<Arc<SentPacket>> {
        let packets = &self.streams.get(&stream)?.packets;
        let index = packets.binary_search_by_key(&seq, |packet| packet.seq()).ok()?;
        packets.get(index).cloned()
    }

    /// Returns the numbers of a stream's kept packets within this range.
    pub(in crate::stream) fn within(&self, stream: usize, first: u64, last: u64) -> Vec<u64> {
        let packets = self.streams.get(&stream).into_iter().flat_map(|stream| &stream.packets);
        packets.map(|packet| packet.seq()).filter(|seq| (first..=last).contains(seq)).collect()
    }

    /// Handles an acknowledgement of everything below `next`. Packets that the collector has given up were removed before.
    pub(in crate::stream) fn acknowledge(&mut self, stream: usize, next: u64, queue: &Queue) {
        if let Some((id, stored)) = next.checked_sub(1).and_then(|last| self.take(stream, 0, last, queue)) {
            queue.stored(id, stored);
        }
    }

    /// Handles packets of a stream that the collector has given up.
    pub(super) fn lose(&mut self, stream: usize, first: u64, last: u64, queue: &Queue) {
        let counted_together = self.take_of_oldest(stream, first, last);
        if let Some((id, mut lost)) = self.take(stream, first, last, queue) {
            lost.add(counted_together);
            queue.change(|state| state.deliveries.lose(id, lost, LostPackets::Network));
        }
    }

    /// Releases the packets of a complete stream.
    pub(super) fn release(&mut self, stream: usize, queue: &Queue) {
        self.take(stream, 0, u64::MAX, queue);
    }

    /// Takes packets out of the combined entry, unless they are all of it, which [`take`](Self::take) handles. Returns their count: exact if they are
    /// kept, otherwise a proportional share, until the collector reports at the end how many it has.
    fn take_of_oldest(&mut self, stream: usize, first: u64, last: u64) -> Count {
        let Some(KeptStream { packets, unacknowledged, given_up, .. }) = self.streams.get_mut(&stream) else {
            return Count::default();
        };
        let is_part = |oldest: &&mut UnackedRange| first > oldest.first || last < oldest.last;
        let Some(oldest) = unacknowledged.front_mut().filter(is_part) else { return Count::default() };
        let (first, last) = (first.max(oldest.first).max(*given_up), last.min(oldest.last));
        if first > last {
            return Count::default();
        }
        *given_up = last.saturating_add(1);
        let count = if self.takes_room {
            let mut known = Count::default();
            let within = packets.iter().filter(|packet| (first..=last).contains(&packet.seq()));
            within.for_each(|packet| known.add(Count::packet(packet.packet.events())));
            known
        } else {
            oldest.count.share((last - first).saturating_add(1))
        };
        oldest.count = oldest.count.without(count);
        count
    }

    /// Removes packets with these numbers. Returns their stream and count.
    fn take(&mut self, stream: usize, first: u64, last: u64, queue: &Queue) -> Option<(StreamId, Count)> {
        let KeptStream { id, packets, unacknowledged, .. } = self.streams.get_mut(&stream)?;
        // The combined entry is taken together with its last packet.
        let begin = unacknowledged.partition_point(|entry| entry.first < first);
        let end = unacknowledged.partition_point(|entry| entry.last <= last);
        let mut count = Count::default();
        for entry in unacknowledged.drain(begin.min(end)..end) {
            count.add(entry.count);
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

/// Returns unpredictable random bytes.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::StreamInfo;
    use std::time::Duration;
    use tracepoint_ring::channel::{PacketHeader, StreamKey};

    const ID: StreamId = StreamId { class: 0, instance: 1 };

    /// Returns a packet with this many events.
    fn packet(seq: u64, events: u64) -> Arc<SentPacket> {
        let key = StreamKey { uuid: [1; 16], class: ID.class, instance: ID.instance };
        let packet = QueuedPacket {
            stream: StreamInfo { id: ID, channel: "c".to_owned() },
            header: PacketHeader { sequence: seq, ..PacketHeader::empty(key, 1) },
            bytes: vec![0; 96],
            events_before: 0,
            events_after: events,
            queued: 0,
        };
        Arc::new(SentPacket { prev_seq: seq.wrapping_sub(1), packet })
    }

    fn stored_and_lost(queue: &Queue) -> (u64, u64) {
        let state = queue.lock();
        (state.deliveries.stored().map(|(_, events)| events).sum(), state.deliveries.lost().values().sum())
    }

    #[test]
    fn what_is_not_acknowledged_takes_bounded_memory_and_is_counted() -> io::Result<()> {
        let queue = Queue::new(1 << 20, Duration::ZERO)?;
        let mut kept = Kept::new()?;
        kept.takes_room = false;
        let packets = 3 * MAX_UNACKNOWLEDGED as u64;
        for seq in 0..packets {
            let events = if seq % 4 == 0 { 0 } else { 2 };
            queue.change(|state| state.deliveries.give(ID, events));
            kept.add(0, &packet(seq, events), events == 0);
        }
        let stream = &kept.streams[&0];
        assert_eq!((stream.unacknowledged.len(), stream.packets.len()), (MAX_UNACKNOWLEDGED, MAX_EMPTY));
        assert_eq!(kept.bytes(), 96 * MAX_EMPTY as u64);
        // The oldest packets cannot be told apart until all of them are acknowledged.
        kept.acknowledge(0, MAX_UNACKNOWLEDGED as u64, &queue);
        assert_eq!(stored_and_lost(&queue), (0, 0));
        kept.lose(0, packets - 3, packets - 2, &queue);
        assert_eq!(stored_and_lost(&queue), (0, 4));
        kept.acknowledge(0, packets, &queue);
        assert_eq!(stored_and_lost(&queue), (packets * 6 / 4 - 4, 4));
        assert_eq!((kept.bytes(), kept.streams[&0].unacknowledged.len()), (0, 0));
        Ok(())
    }

    /// With and without kept packets, part of the combined entry is given up.
    #[test]
    fn what_is_given_up_of_the_oldest_packets_is_lost_once() -> io::Result<()> {
        for keeps in [true, false] {
            let queue = Queue::new(1 << 30, Duration::ZERO)?;
            let mut kept = Kept::new()?;
            kept.takes_room = keeps;
            let packets = 2 * MAX_UNACKNOWLEDGED as u64;
            for seq in 0..packets {
                let events = if seq % 4 == 0 { 0 } else { 2 };
                queue.change(|state| state.deliveries.give(ID, events));
                kept.add(0, &packet(seq, events), keeps);
            }
            let last_of_oldest = packets - MAX_UNACKNOWLEDGED as u64;
            kept.lose(0, 100, 199, &queue);
            assert_eq!(stored_and_lost(&queue), (0, 150), "{keeps}");
            // A new connection reports it again.
            kept.lose(0, 100, 199, &queue);
            assert_eq!(stored_and_lost(&queue), (0, 150), "{keeps}");
            // The last of the oldest packets, and some that have entries of their own.
            kept.lose(0, last_of_oldest - 3, last_of_oldest + 4, &queue);
            assert_eq!(stored_and_lost(&queue), (0, 150 + 12), "{keeps}");
            kept.acknowledge(0, packets, &queue);
            assert_eq!(stored_and_lost(&queue), (packets * 6 / 4 - 162, 162), "{keeps}");
            assert_eq!((kept.bytes(), kept.streams[&0].unacknowledged.len()), (0, 0));
        }
        Ok(())
    }
}
