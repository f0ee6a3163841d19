//! Counts the records of a packet.

use crate::metadata::Metadata;
use crate::packet::PacketDecoder;
use crate::record::sizes::RecordSizes;
use tracepoint_ring::channel::{PacketHeader, StreamKey};

/// Counts of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCount {
    pub(crate) count: u64,
    /// The time of the last one.
    pub(crate) last: u64,
}

impl EventCount {
    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.last = self.last.max(other.last);
    }
}

/// The records in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) records: u64,
    /// The time of the last record; the packet's begin if there is none.
    pub(crate) last: u64,
}

/// Steps from record to record by their sizes. A packet that does not permit this is decoded value by value, which also finds the reason.
#[derive(Debug)]
pub(crate) struct Walker {
    sizes: Option<RecordSizes>,
    counts: Counts,
}

/// Counts in the last packet.
#[derive(Debug, Default)]
struct Counts {
    /// By event id.
    found: Vec<EventCount>,
    /// The ids whose entry in `found` is not 0.
    touched: Vec<u16>,
}

/// The reason why a packet does not have the form that the tracer writes.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ContentError(String);

impl Walker {
    /// A walker for records of these sizes; without them, every packet is decoded.
    pub(crate) fn new(sizes: Option<RecordSizes>) -> Self {
        Self { sizes, counts: Counts::default() }
    }

    /// Replaces the sizes after the metadata has grown.
    pub(crate) fn set_sizes(&mut self, sizes: Option<RecordSizes>) {
        self.sizes = sizes;
    }

    /// Counts the records in a packet, which must contain nothing else.
    pub(crate) fn walk(
        &mut self,
        metadata: &Metadata,
        head: &PacketHeader,
        bytes: &[u8],
    ) -> Result<Content, ContentError> {
        let Self { sizes, counts } = self;
        counts.clear();
        if let Some(content) = sizes.as_ref().and_then(|sizes| walk_by_size(sizes, counts, head, bytes)) {
            return Ok(content);
        }
        counts.clear();
        let mut content = Content { records: 0, last: head.begin };
        for event in decoder(metadata, head, bytes)? {
            let event = event
                .map_err(|damage| ContentError(format!("byte {} of the packet: {}", damage.offset, damage.reason)))?;
            if event.cycles < content.last {
                return Err(ContentError("an event is earlier than the previous one, or than the packet".to_owned()));
            }
            let id = u16::try_from(event.class.id)
                .map_err(|_| ContentError("an event id has more than 16 bits".to_owned()))?;
            content = Content { records: content.records + 1, last: event.cycles };
            counts.add(id, event.cycles);
        }
        Ok(content)
    }

    /// Counts in the last packet, by event id.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, EventCount)> + '_ {
        self.counts.touched.iter().map(|id| (u64::from(*id), self.counts.found[usize::from(*id)]))
    }
}

impl Counts {
    fn clear(&mut self) {
        for id in self.touched.drain(..) {
            self.found[usize::from(id)] = EventCount::default();
        }
    }

    fn add(&mut self, id: u16, time: u64) {
        let index = usize::from(id);
        if self.found.len() <= index {
            self.found.resize(index + 1, EventCount::default());
        }
        let found = &mut self.found[index];
        if found.count == 0 {
            self.touched.push(id);
        }
        *found = EventCount { count: found.count + 1, last: time };
    }
}

/// `None` if the records do not lead to the end of the content.
fn walk_by_size(sizes: &RecordSizes, counts: &mut Counts, head: &PacketHeader, bytes: &[u8]) -> Option<Content> {
    let bytes = bytes.get(..usize::try_from(head.content_bits / 8).ok()?)?;
    let mut content = Content { records: 0, last: head.begin };
    for record in sizes.records(head.stream.class, bytes, 0, head.begin) {
        let record = record.ok()?;
        content = Content { records: content.records + 1, last: record.time };
        counts.add(record.id, record.time);
    }
    Some(content)
}

/// A decoder of a packet, which must match `head`.
fn decoder<'a>(metadata: &Metadata, head: &PacketHeader, bytes: &'a [u8]) -> Result<PacketDecoder<'a>, ContentError> {
    let decoder = PacketDecoder::new(metadata, bytes).map_err(|damage| ContentError(damage.reason))?;
    let packet = decoder.packet();
    let as_described = packet.uuid == Some(head.stream.uuid)
        && packet.class.id == u64::from(head.stream.class)
        && packet.instance == Some(head.stream.instance)
        && (packet.begin, packet.end) == (Some(head.begin), Some(head.end))
        && (packet.content_bits, packet.packet_bits) == (head.content_bits, head.packet_bits)
        && (packet.sequence, packet.discarded) == (Some(head.sequence), Some(head.discarded))
        && packet.events_before == Some(head.events_before)
        && packet.tid.is_none_or(|tid| tid == u64::from(head.tid))
        && packet.size() == bytes.len() as u64;
    if as_described {
        Ok(decoder)
    } else {
        Err(ContentError("the metadata describes another packet than the tracer writes".to_owned()))
    }
}

/// Checks that the metadata describes the layout written by the tracer.
pub(crate) fn check_layout(metadata: &Metadata, uuid: [u8; 16], class: u32) -> Result<(), ContentError> {
    // Each field has a distinct value that needs all of its bits; the packet has 8 bytes of padding.
    let value = |last: u8| u64::from_le_bytes([last, 0xe1, 0xd2, 0xc3, 0xb4, 0xa5, 0x96, 0xf7]);
    let nothing = PacketHeader::empty(StreamKey { uuid, class, instance: value(5) }, value(1));
    let head = PacketHeader {
        end: value(2),
        packet_bits: nothing.packet_bits + 64,
        sequence: value(3),
        discarded: value(4),
        tid: 0xf5a6_9788,
        events_before: value(6),
        ..nothing
    };
    let bytes = [&head.bytes()[..], &[0; 8]].concat();
    decoder(metadata, &head, &bytes).map(drop)
}
