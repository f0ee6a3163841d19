//! Single events for the legacy layout: merges the events of several packets by time.

use super::losses::LossReason;
use super::options::LegacyContent;
use super::queue::{Layout, PacketQueue, QueuedPacket};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use tracepoint_reader::{Metadata, PacketDecoder, text};
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader};

/// Number of bytes of messages prepared in advance. Events of different threads are ordered within this window.
const AHEAD: usize = 4 << 20;
/// Memory of an event in addition to its bytes.
const EVENT_COST: usize = size_of::<(u64, Range<usize>)>();
/// Offset of an ingested message in its record: after the header word and the length.
const MESSAGE_OFFSET: usize = 12;

/// Merges the events of the packets that are being sent.
#[derive(Debug, Default)]
pub(super) struct EventMerge {
    /// By order of arrival.
    loaded: BTreeMap<u64, LoadedPacket>,
    /// Number of packets that have arrived.
    came: u64,
    /// The time of each packet's next event, and its order of arrival.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    bytes: usize,
}

#[derive(Debug)]
struct LoadedPacket {
    held: QueuedPacket,
    contents: Vec<u8>,
    events: Vec<(u64, Range<usize>)>,
    next: usize,
}

impl EventMerge {
    /// Prepares the next event, if there is one. Returns its time in ns, and its content.
    pub(super) fn peek(&mut self, queue: &PacketQueue, content: LegacyContent) -> Option<(u64, &[u8])> {
        while self.bytes < AHEAD {
            let Some(held) = queue.take() else { break };
            let layout = queue.lock().layout.clone();
            match layout {
                Some(layout) => self.add(LoadedPacket::new(held, &layout, content, queue), queue),
                None => queue.finished(&held),
            }
        }
        let Reverse((time, place)) = self.heap.peek()?;
        let loaded = self.loaded.get(place)?;
        let (_, range) = loaded.events.get(loaded.next)?;
        Some((*time, loaded.contents.get(range.clone())?))
    }

    fn add(&mut self, loaded: LoadedPacket, queue: &PacketQueue) {
        let Some((time, _)) = loaded.events.first() else {
            queue.finished(&loaded.held);
            return;
        };
        self.bytes += loaded.cost();
        self.heap.push(Reverse((*time, self.came)));
        self.loaded.insert(self.came, loaded);
        self.came += 1;
    }

    /// Removes the event that [`EventMerge::peek`] returned: it was sent, or lost for this reason.
    pub(super) fn pass(&mut self, queue: &PacketQueue, lost: Option<LossReason>) {
        let Some(Reverse((_, place))) = self.heap.pop() else { return };
        let Some(loaded) = self.loaded.get_mut(&place) else { return };
        if let Some(reason) = lost {
            queue.lose(loaded.held.stream, reason, 1);
        }
        loaded.next += 1;
        loaded.held.done += 1;
        if let Some((time, _)) = loaded.events.get(loaded.next) {
            self.heap.push(Reverse((*time, place)));
        } else {
            self.bytes -= loaded.cost();
            queue.finished(&loaded.held);
            self.loaded.remove(&place);
        }
    }

    /// Returns the packets with the remaining events to the queue.
    pub(super) fn requeue(&mut self, queue: &PacketQueue) {
        queue.put_back(std::mem::take(self).loaded.into_values().map(|loaded| loaded.held));
    }
}

impl LoadedPacket {
    /// Prepares the messages of a packet. Malformed records are counted as lost.
    fn new(mut held: QueuedPacket, layout: &Layout, content: LegacyContent, queue: &PacketQueue) -> Self {
        let mut contents = Vec::new();
        let mut events = Vec::new();
        let readable = match (&layout.sizes, held.is_message, content) {
            (Some(_), true, _) => records(&held, layout, MESSAGE_OFFSET, &mut contents, &mut events),
            (Some(_), false, LegacyContent::Record) => records(&held, layout, 0, &mut contents, &mut events),
            _ => texts(&held, &layout.metadata, &mut contents, &mut events),
        };
        let made = held.done + events.len() as u64;
        if !readable || made < held.events {
            queue.lose(held.stream, LossReason::Unreadable, held.events.saturating_sub(made));
            held.events = made;
        }
        Self { held, contents, events, next: 0 }
    }

    fn cost(&self) -> usize {
        self.contents.len() + self.events.len() * EVENT_COST
    }
}

/// Appends the bytes of each record, without its first `skip` bytes. Returns whether all records could be read.
fn records(
    held: &QueuedPacket,
    layout: &Layout,
    skip: usize,
    contents: &mut Vec<u8>,
    events: &mut Vec<(u64, Range<usize>)>,
) -> bool {
    let Some(sizes) = &layout.sizes else { return false };
    let clock = layout.metadata.stream(u64::from(held.stream.class)).and_then(|class| class.clock);
    let clock = clock.and_then(|index| layout.metadata.clocks().get(index));
    let begin = PacketHeader::parse(&held.bytes).begin;
    let done = usize::try_from(held.done).unwrap_or(usize::MAX);
    for record in sizes.records(held.stream.class, &held.bytes, HEADER_SIZE, begin).skip(done) {
        let Ok(record) = record else { return false };
        let from = contents.len();
        contents.extend_from_slice(held.bytes.get(record.start + skip..record.end).unwrap_or_default());
        let time = clock.map_or(record.time, |clock| u64::try_from(clock.nanoseconds(record.time)).unwrap_or(0));
        events.push((time, from..contents.len()));
    }
    true
}

/// Appends the text of each event. Returns whether all events could be read.
fn texts(
    held: &QueuedPacket,
    metadata: &Metadata,
    contents: &mut Vec<u8>,
    events: &mut Vec<(u64, Range<usize>)>,
) -> bool {
    let Ok(decoder) = PacketDecoder::new(metadata, &held.bytes) else { return false };
    let done = usize::try_from(held.done).unwrap_or(usize::MAX);
    for event in decoder.skip(done) {
        let Ok(event) = event else { return false };
        let from = contents.len();
        text::write_event(contents, &event);
        events.push((u64::try_from(event.time_ns).unwrap_or(0), from..contents.len()));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctf;
    use crate::description::{ChannelDescription, EventDescription};
    use crate::trace_info::{ClockInfo, ProcessInfo, TraceInfo};
    use crate::udp::options::DropPolicy;
    use std::sync::Arc;
    use tracepoint_reader::internal::RecordSizes;
    use tracepoint_ring::Level;
    use tracepoint_ring::channel::{Policy, StreamId, StreamKey};

    /// A store that knows one event, without fields.
    fn store() -> PacketQueue {
        let clock = ClockInfo { uuid: None, offset: 0 };
        let trace = TraceInfo { uuid: [1; 16], name: "t".to_owned(), clock, process: ProcessInfo::default() };
        let name = "channel0".to_owned();
        let channel =
            ChannelDescription { class: 0, name, policy: Policy::Discard, packet_size: 4096, context: vec![] };
        let (name, format) = ("a:b".to_owned(), "");
        let event = EventDescription { class: 0, id: 0, name, level: Level::Info, fields: &[], doc: "", format };
        let metadata = Metadata::parse(ctf::metadata(&trace, &[channel], &[event]).as_bytes()).expect("metadata");
        let queue = PacketQueue::new(1 << 20, DropPolicy::Oldest).expect("an event fd");
        let sizes = RecordSizes::of(&metadata);
        queue.lock().layout = Some(Arc::new(Layout { metadata, sizes }));
        queue
    }

    /// Returns a packet with events at these times.
    fn packet(instance: u64, times: &[u64]) -> QueuedPacket {
        let records: Vec<u8> = times.iter().flat_map(|time| (time << 16).to_le_bytes()).collect();
        let (begin, end) = (times[0], times[times.len() - 1]);
        let key = StreamKey { uuid: [1; 16], class: 0, instance };
        let header = PacketHeader { end, ..PacketHeader::empty(key, begin).with_size(HEADER_SIZE + records.len()) };
        let bytes = [&header.bytes()[..], &records].concat();
        let stream = StreamId { class: 0, instance };
        QueuedPacket { stream, bytes, events: times.len() as u64, done: 0, needs: 0, is_message: false, kept: false }
    }

    #[test]
    fn finished_packets_are_removed_while_others_wait() {
        let queue = store();
        let mut events = EventMerge::default();
        // A packet whose second event is far in the future, and a packet in each round.
        queue.push(packet(1, &[1, 1_000_000]));
        queue.push(packet(0, &[2]));
        let mut times = Vec::new();
        for round in 0..1000 {
            queue.push(packet(0, &[3 + round]));
            let (time, _) = events.peek(&queue, LegacyContent::Text).expect("an event");
            times.push(time);
            events.pass(&queue, None);
            assert!(events.loaded.len() <= 3, "{}", events.loaded.len());
        }
        assert_eq!(times, (1..=1000).collect::<Vec<_>>());
        // The remaining packets are queued in their order of arrival.
        events.requeue(&queue);
        let left = [(); 3].map(|()| queue.take().map(|held| (held.stream.instance, held.left())));
        assert_eq!(left, [Some((1, 1)), Some((0, 1)), Some((0, 1))]);
        assert!(queue.take().is_none() && queue.lock().bytes > 0);
    }
}
