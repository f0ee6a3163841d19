//! Splits packets between records to fit into datagrams. Each part is a packet.

use super::losses::LossReason;
use super::queue::{PacketQueue, QueuedPacket};
use std::collections::HashMap;
use tracepoint_reader::internal::{RecordSizes, check, seal};
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader, StreamId};
use tracepoint_wire::udp::batch::BATCH_HEADER;
use tracepoint_wire::udp::packet_header;

/// Remaining space in a datagram that is too small for another packet.
const SCRAP: usize = HEADER_SIZE + 32;

/// The last counters sent of a stream, in any session.
#[derive(Clone, Copy, Debug, Default)]
struct SentCounters {
    packets: u64,
    discarded: u64,
}

/// Splits one packet after another.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    streams: HashMap<StreamId, SentCounters>,
    current: Option<SplitPacket>,
}

/// A packet, and the position up to which it was sent.
#[derive(Debug)]
struct SplitPacket {
    held: QueuedPacket,
    header: PacketHeader,
    at: usize,
    time: u64,
}

/// The sizes of a client's datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramSizes {
    pub(super) mtu: usize,
    pub(super) largest: usize,
}

impl Splitter {
    pub(super) const fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Returns the rest of the current packet to the queue.
    pub(super) fn requeue(&mut self, queue: &PacketQueue) {
        queue.put_back(self.current.take().map(|packet| packet.held).into_iter());
    }

    /// Fills a datagram with packets that can be decoded with the first `metadata` bytes of the metadata, and at most `most` events. The first
    /// [`BATCH_HEADER`] bytes are left to the caller. Returns the number of events, or `None` if there is nothing to send.
    pub(super) fn fill(
        &mut self,
        queue: &PacketQueue,
        sizes: &RecordSizes,
        metadata: u32,
        room: DatagramSizes,
        most: u64,
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        out.resize(BATCH_HEADER, 0);
        let mut events = 0;
        while (out.len() + SCRAP <= room.mtu || out.len() == BATCH_HEADER) && u64::from(events) < most {
            let Some(mut packet) = self.current.take().or_else(|| next(queue, sizes, metadata)) else { break };
            let fresh = out.len() == BATCH_HEADER;
            let part = packet.part(sizes, room.mtu.saturating_sub(out.len()), most - u64::from(events));
            let part = match part {
                Part::TooLarge(end, time) if fresh && end - packet.at + HEADER_SIZE + BATCH_HEADER <= room.largest => {
                    Part::Whole { end, time, events: 1 }
                }
                part => part,
            };
            match part {
                Part::Whole { end, time, events: count } => {
                    events += count;
                    self.write(&mut packet, end, time, count, out);
                }
                Part::TooLarge(end, time) if fresh => {
                    queue.lose(packet.held.stream, LossReason::TooLarge, 1);
                    packet.pass(end, time, 1);
                    // The counters of the packet are sent nevertheless.
                    if packet.is_at_end() {
                        self.write(&mut packet, end, time, 0, out);
                    }
                }
                Part::TooLarge(..) => {
                    self.current = Some(packet);
                    break;
                }
                Part::Unreadable => {
                    queue.lose(packet.held.stream, LossReason::Unreadable, packet.held.left());
                    packet.at = packet.held.bytes.len();
                }
            }
            if packet.is_at_end() {
                queue.finished(&packet.held);
            } else {
                self.current = Some(packet);
            }
        }
        (out.len() > BATCH_HEADER).then_some(events)
    }

    fn write(&mut self, packet: &mut SplitPacket, end: usize, time: u64, events: u32, out: &mut Vec<u8>) {
        let sent = self.streams.entry(packet.held.stream).or_default();
        let whole = &packet.header;
        let records = packet.held.bytes.get(packet.at..end).unwrap_or_default();
        let (first, last) = (packet.held.done == 0, end == packet.held.bytes.len());
        let header = PacketHeader {
            begin: if first { whole.begin } else { packet.first_time(records) },
            end: if last { whole.end } else { time },
            sequence: sent.packets,
            discarded: if last { whole.discarded } else { sent.discarded },
            events_before: whole.events_before.saturating_add(packet.held.done),
            ..whole.with_size(HEADER_SIZE + records.len())
        };
        sent.packets += 1;
        sent.discarded = header.discarded;
        let begin = out.len();
        out.extend_from_slice(&header.bytes());
        out.extend_from_slice(records);
        seal(&mut out[begin..]);
        packet.pass(end, time, u64::from(events));
    }
}

/// A part of a packet.
enum Part {
    /// Records up to `end` fit, or none are left.
    Whole {
        end: usize,
        time: u64,
        events: u32,
    },
    /// The next record does not fit; its end and time.
    TooLarge(usize, u64),
    Unreadable,
}

impl SplitPacket {
    fn new(held: QueuedPacket, sizes: &RecordSizes) -> Result<Self, QueuedPacket> {
        let header = match packet_header(&held.bytes) {
            Ok(header) if header.size() == held.bytes.len() as u64 && !check(&held.bytes).is_wrong() => header,
            _ => return Err(held),
        };
        let (mut at, mut time) = (HEADER_SIZE, header.begin);
        let done = usize::try_from(held.done).unwrap_or(usize::MAX);
        for record in sizes.records(held.stream.class, &held.bytes, HEADER_SIZE, header.begin).take(done) {
            let Ok(record) = record else { return Err(held) };
            (at, time) = (record.end, record.time);
        }
        Ok(Self { held, header, at, time })
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.held.bytes.len()
    }

    fn pass(&mut self, end: usize, time: u64, events: u64) {
        self.at = end;
        self.time = time;
        self.held.done += events;
    }

    /// Returns the part that fits into `room` bytes, including the header, with at most `most` events.
    fn part(&self, sizes: &RecordSizes, room: usize, most: u64) -> Part {
        let (mut end, mut time, mut events) = (self.at, self.time, 0);
        for record in sizes.records(self.held.stream.class, &self.held.bytes, self.at, self.time) {
            match record {
                _ if u64::from(events) == most => break,
                Ok(record) if record.end - self.at + HEADER_SIZE <= room => {
                    (end, time) = (record.end, record.time);
                    events += 1;
                }
                Ok(record) if events == 0 => return Part::TooLarge(record.end, record.time),
                Err(_) if events == 0 => return Part::Unreadable,
                _ => break,
            }
        }
        Part::Whole { end, time, events }
    }

    /// Returns the time of the first of these records, which come next.
    fn first_time(&self, records: &[u8]) -> u64 {
        let low = records.first_chunk().map_or(self.time, |word| u64::from_le_bytes(*word) >> 16);
        tracepoint_reader::internal::extend_time(self.time, low)
    }
}

/// Returns the next packet that can be decoded with the first `metadata` bytes of the metadata. Malformed packets are counted as lost.
fn next(queue: &PacketQueue, sizes: &RecordSizes, metadata: u32) -> Option<SplitPacket> {
    loop {
        let held = queue.take()?;
        if held.needs > metadata {
            queue.put_back(std::iter::once(held));
            return None;
        }
        match SplitPacket::new(held, sizes) {
            Ok(packet) => return Some(packet),
            Err(held) => {
                queue.lose(held.stream, LossReason::Unreadable, held.left());
                queue.finished(&held);
            }
        }
    }
}
