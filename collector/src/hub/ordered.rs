//! A stream of the stream protocol: numbered packets, put in order, and acknowledged once stored.

use super::tally::Tally;
use crate::memory::MemoryShare;
use crate::reorder::{Limits, MAX_LOST, Reorder};
use crate::storage::Packet;
use crate::view::View;
use std::collections::VecDeque;
use std::time::Instant;
use tracepoint_reader::internal::check_padded;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::relay::Index;
use tracepoint_wire::stream::{ClosedStream, NO_SEQ, ROUTE_OFFSET, ROUTE_SIZE, Route, StreamTotals, route_of};

/// Magic number of an event packet.
const MAGIC: u32 = 0xC1FC_1FC1;
/// Size of a packet's header in its file.
const HEADER: usize = 96;

/// State of a stream in addition to its files.
#[derive(Debug)]
pub(crate) struct OrderedStream {
    pub(crate) reorder: Reorder<Arrived>,
    /// Stream class and instance.
    pub(crate) key: (u32, u64),
    /// Maximum packet size in the file, in bytes.
    pub(super) largest: u32,
    /// Packets queued at the storage: the number of each, and the count of records in the stream before it.
    outstanding: VecDeque<(u64, u64)>,
    /// Numbers of packets that the storage could not write, not yet reported to the sender.
    unwritten: Vec<u64>,
    /// Counts of the stored packets.
    pub(super) tally: Tally,
    /// Stored packets that viewers may not read yet: numbers and stream classes.
    hidden: VecDeque<(u64, u64)>,
    /// The number up to which viewers may read.
    released: Option<u64>,
    /// The last synchronisation: viewers see its time once everything up to its number is stored.
    promise: Option<(u64, u64)>,
    /// The end of the stream, as reported by the sender.
    pub(super) end: Option<ClosedStream>,
    /// The last acknowledged number.
    acknowledged: Option<u64>,
    /// The control connection on which the stream was announced last. Messages about the stream are sent on this connection only: the handle is valid
    /// there.
    connection: u64,
    /// Ranges reported as lost, as first and last number. The sender may have lost the connection before it read the report.
    told: VecDeque<(u64, u64)>,
}

/// Error: the sender or the network has damaged the packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DamagedPacket;

/// A packet as it is stored, its index, and the count of records in the stream before it.
pub(crate) type Arrived = (Packet, Index, u64);

/// Decodes a packet in wire format: returns its route and the packet as it is stored. Copies only the first bytes of the packet, over the wire fields
/// that follow them.
pub(crate) fn unwrap(
    mut wire: Vec<u8>,
    memory: Option<MemoryShare>,
    key: (u32, u64),
    largest: u32,
) -> Result<(Route, Arrived), DamagedPacket> {
    let route = route_of(&wire).map_err(|_| DamagedPacket)?;
    wire.copy_within(..ROUTE_OFFSET, ROUTE_SIZE);
    let packet = &wire[ROUTE_SIZE..];
    let header = PacketHeader::parse(packet);
    let padding = header.size().checked_sub(packet.len() as u64).and_then(|padding| u32::try_from(padding).ok());
    let is_whole = packet.len() >= HEADER
        && header.magic == MAGIC
        && header.content_bits == packet.len() as u64 * 8
        && header.packet_bits.is_multiple_of(8)
        && header.size() <= largest.into()
        && header.begin <= header.end
        && (header.stream.class, header.stream.instance, header.sequence) == (key.0, key.1, route.seq);
    let padding = padding.filter(|_| is_whole).ok_or(DamagedPacket)?;
    if check_padded(packet, padding as usize).is_wrong() {
        return Err(DamagedPacket);
    }
    let index = Index::of(route.handle, &header);
    Ok((route, (Packet::behind(wire, ROUTE_SIZE, padding, memory), index, header.events_before)))
}

impl OrderedStream {
    /// Creates a stream whose packets below `next` are stored.
    pub(crate) const fn new(key: (u32, u64), largest: u32, next: u64, tally: Tally) -> Self {
        Self {
            reorder: Reorder::new(next),
            key,
            largest,
            outstanding: VecDeque::new(),
            unwritten: Vec::new(),
            tally,
            hidden: VecDeque::new(),
            released: None,
            promise: None,
            end: None,
            acknowledged: None,
            connection: 0,
            told: VecDeque::new(),
        }
    }

    /// Records that the sender has announced the stream on this connection. Everything that a lost connection may have swallowed is reported again.
    pub(super) fn announced(&mut self, connection: u64) {
        self.acknowledged = None;
        self.reorder.tell_again(std::mem::take(&mut self.told));
        self.connection = connection;
    }

    /// Returns whether the stream was announced on this connection.
    pub(super) const fn is_announced(&self, connection: u64) -> bool {
        self.connection == connection
    }

    /// Returns whether an unwanted packet was given up before; otherwise it is a duplicate.
    pub(super) fn is_late(&self, seq: u64) -> bool {
        let is_in = |range: &(u64, u64)| (range.0..=range.1).contains(&seq);
        self.told.iter().any(is_in) || self.reorder.has_given_up(seq)
    }

    /// Returns the next packet for the storage.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Packet, Index)> {
        let (seq, (packet, index, events_before)) = self.reorder.pop(now)?;
        self.outstanding.push_back((seq, events_before));
        Some((packet, index))
    }

    /// Records the storage's result for a packet. Returns the stream class if viewers may read the packet at once.
    pub(super) fn stored(&mut self, seq: u64, is_stored: bool, stream_class: u64) -> Option<u64> {
        let events_before = self.outstanding.pop_front();
        if !is_stored {
            self.unwritten.push(seq);
            return None;
        }
        self.tally.add(seq, events_before.map_or(0, |(_, events_before)| events_before));
        if self.released.is_some_and(|released| seq <= released) {
            return Some(stream_class);
        }
        self.hidden.push_back((seq, stream_class));
        None
    }

    /// Makes packets up to this number readable, and returns the stream classes of those that become readable.
    pub(super) fn release(&mut self, upto: u64) -> Vec<u64> {
        self.released = Some(upto.max(self.released.unwrap_or_default()));
        let mut released = Vec::new();
        while let Some((_, class)) = self.hidden.front().copied().filter(|(seq, _)| *seq <= upto) {
            released.push(class);
            self.hidden.pop_front();
        }
        released
    }

    pub(super) fn sync(&mut self, last: u64, time: u64, now: Instant) {
        self.reorder.sent_up_to(last, now);
        self.promise = Some((last, time));
    }

    /// Returns the time to announce to viewers, once everything before it is with the storage.
    pub(super) fn fulfilled(&mut self) -> Option<u64> {
        let (last, _) = self.promise?;
        if last != NO_SEQ && last >= self.reorder.next_number() {
            return None;
        }
        self.promise.take().map(|(_, time)| time)
    }

    /// Returns the lowest number that is neither stored nor given up.
    pub(crate) fn next_stored(&self) -> u64 {
        self.outstanding.front().map_or_else(|| self.reorder.next_number(), |(seq, _)| *seq)
    }

    /// Returns that number if it changed since the last acknowledgement, or if `all` is true. Appends the given-up ranges before it, which are to be
    /// reported first.
    pub(crate) fn news(&mut self, all: bool, lost: &mut Vec<(u64, u64)>) -> Option<u64> {
        let next = self.next_stored();
        let first = lost.len();
        lost.extend(self.reorder.lost.drain(..));
        lost.extend(self.unwritten.drain(..).map(|seq| (seq, seq)));
        self.told.extend(&lost[first..]);
        self.told.drain(..self.told.len().saturating_sub(MAX_LOST));
        let is_news = self.acknowledged.replace(next) != Some(next);
        (is_news || all).then_some(next)
    }

    pub(crate) fn end(&mut self, end: ClosedStream, now: Instant) {
        self.reorder.sent_up_to(end.last, now);
        self.end = Some(end);
    }

    /// Returns the final counts once the stream has ended, nothing is missing, and viewers can read all packets.
    pub(super) fn balance(&mut self, view: &View, metadata: Option<&View>) -> Option<StreamTotals> {
        let is_whole = self.reorder.is_complete() && self.outstanding.is_empty() && self.hidden.is_empty();
        let end = self.end.filter(|_| is_whole)?;
        let events = metadata.map_or(0, |metadata| self.tally.events(end.last, end.events_after, view, metadata));
        Some(StreamTotals {
            handle: end.handle,
            packets: self.tally.packets,
            packets_lost: end.packets.saturating_sub(self.tally.packets),
            events,
            // Includes events that the sender itself has lost; the sender subtracts those.
            events_lost: end.events_after.saturating_sub(events),
        })
    }

    /// Returns the remaining packets at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<(Packet, Index)> {
        let rest = self.reorder.finish().into_iter();
        rest.map(|(seq, (packet, index, events_before))| {
            self.outstanding.push_back((seq, events_before));
            (packet, index)
        })
        .collect()
    }

    /// Gives up the first gap if it has waited too long, and appends the ranges to request. Returns whether packets may leave.
    pub(super) fn tick(&mut self, now: Instant, limits: &Limits, ask: &mut Vec<(u64, u64)>) -> bool {
        self.reorder.tick(now, limits, ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_reader::internal::sealed;
    use tracepoint_wire::stream::{WIRE_HEAD, wire_head};

    /// Builds a packet in wire format.
    fn wire(seq: u64, prev_seq: u64, change: impl FnOnce(&mut PacketHeader), padding: u64) -> Vec<u8> {
        let mut header = PacketHeader::parse(&[]);
        header.magic = MAGIC;
        (header.stream.class, header.stream.instance) = (3, 9);
        (header.begin, header.end, header.sequence) = (10, 20, seq);
        header.content_bits = (HEADER as u64 + 8) * 8;
        header.packet_bits = header.content_bits + padding * 8;
        change(&mut header);
        let mut packet = [&header.bytes()[..], &[5; 8]].concat();
        packet.resize(packet.len() + padding as usize, 0);
        let packet = sealed(packet);
        let head = wire_head(&packet, Route { handle: 7, seq, prev_seq, circuit_id: 0 }).expect("a packet");
        [&head[..], &packet[ROUTE_OFFSET..HEADER + 8]].concat()
    }

    #[test]
    fn a_packet_is_stored_as_it_left_its_ring() {
        for padding in [0, 24] {
            let sent = wire(4, 2, |_| {}, padding);
            let (route, (stored, index, _)) = unwrap(sent.clone(), None, (3, 9), 4096).expect("a packet");
            assert_eq!((route.handle, route.seq, route.prev_seq), (7, 4, 2));
            assert_eq!(stored.content(), [&sent[..ROUTE_OFFSET], &sent[WIRE_HEAD..]].concat());
            assert_eq!((stored.size(), index.packet_size), (104 + padding, (104 + padding) * 8));
            assert_eq!((index.begin, index.end, index.packet_number, index.stream_class), (10, 20, 4, 3));
        }
    }

    #[test]
    fn what_is_stored_is_acknowledged_while_the_storage_has_more() {
        let now = Instant::now();
        let mut ordered = OrderedStream::new((3, 9), 4096, 0, Tally::default());
        for seq in 0..3_u64 {
            let prev = seq.checked_sub(1).unwrap_or(NO_SEQ);
            let (_, arrived) = unwrap(wire(seq, prev, |_| {}, 0), None, (3, 9), 4096).expect("a packet");
            ordered.reorder.push(seq, prev, 104, arrived, now);
            ordered.pop(now).expect("nothing is missing before it");
        }
        for stored in 0..3 {
            assert_eq!(ordered.next_stored(), stored);
            ordered.stored(stored, true, 3);
        }
        assert_eq!(ordered.next_stored(), 3);
    }

    #[test]
    fn damaged_packets_are_refused() {
        type Change = fn(&mut PacketHeader);
        let changes: [Change; 7] = [
            |header| header.magic = 1,
            |header| header.content_bits += 8,
            |header| header.packet_bits = 8,
            |header| header.packet_bits = u64::MAX,
            |header| header.sequence = 5,
            |header| header.stream.instance = 8,
            |header| header.end = 9,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert!(unwrap(wire(4, 2, change, 0), None, (3, 9), 4096).is_err(), "{number}");
        }
        let good = wire(4, 2, |_| {}, 0);
        assert!(unwrap(good.clone(), None, (3, 9), 100).is_err());
        for at in 64..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1;
            assert!(unwrap(flipped, None, (3, 9), 4096).is_err(), "{at}");
        }
        for end in 0..good.len() {
            assert!(unwrap(good[..end].to_vec(), None, (3, 9), 4096).is_err(), "{end}");
        }
    }
}
