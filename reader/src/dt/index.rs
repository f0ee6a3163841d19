//! Lists the packets of a dt file by stream.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use datatrace::{DtReader, Slot, SlotPlace};

use crate::checksum::sealed;
use crate::decode::State;
use crate::loss::Damage;
use crate::metadata::{Metadata, StreamClass};
use crate::packet::Packet;
use tracepoint_ring::channel::{HEADER_SIZE, PACKET_MAGIC, PacketHeader};

/// Number of bytes of a packet that are read for its header.
const HEAD: u64 = 64 << 10;
/// Maximum number of damaged places reported one by one. The rest is counted.
const MAX_DAMAGE: usize = 1000;
/// Maximum number of packets of a stream outside the slots: its first and its last.
const MAX_EDGES: u8 = 2;

/// The location of a packet's bytes.
#[derive(Clone, Debug)]
pub(crate) enum PacketBytes {
    Slot(SlotPlace),
    /// In memory: empty packets are stored in a postamble.
    Held(Arc<[u8]>),
}

/// A packet of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Its offset in the file. Packets in memory get numbers beyond the end of the file.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) bytes: PacketBytes,
    /// Its begin time, in cycles.
    pub(crate) begin: u64,
    /// Its end time, in cycles; 0 if it was never closed.
    pub(crate) end: Option<u64>,
    pub(crate) sequence: Option<u64>,
    pub(crate) before: Option<u64>,
}

impl Part {
    fn new(packet: &Packet, offset: u64, bytes: PacketBytes) -> Self {
        Self {
            offset,
            length: packet.size(),
            bytes,
            begin: packet.begin.unwrap_or(0),
            end: packet.end,
            sequence: packet.sequence,
            before: packet.events_before,
        }
    }

    /// Reads it; `None` if it was overwritten since the file was opened, or cannot be read.
    pub(super) fn read(&self, reader: &DtReader) -> Option<Vec<u8>> {
        match &self.bytes {
            PacketBytes::Held(bytes) => Some(bytes.to_vec()),
            PacketBytes::Slot(place) => reader.bytes_at(place).ok().flatten(),
        }
    }

    /// True if it is in a slot.
    pub(super) fn is_slot(&self) -> bool {
        matches!(self.bytes, PacketBytes::Slot(_))
    }
}

/// A stream and its packets in order.
#[derive(Clone, Debug)]
pub(crate) struct DtStream {
    pub(crate) class: Arc<StreamClass>,
    pub(crate) instance: Option<u64>,
    /// The file name it would have in a directory.
    pub(crate) name: String,
    /// Its begin time, in cycles.
    pub(crate) begin: u64,
    pub(crate) parts: Arc<[Part]>,
}

impl DtStream {
    /// True if the packet with this index is in a slot.
    pub(crate) fn is_in_slot(&self, index: usize) -> bool {
        self.parts.get(index).is_some_and(Part::is_slot)
    }
}

/// The contents of a file.
pub(super) struct Index {
    pub(super) streams: Vec<DtStream>,
    pub(super) damage: Vec<Damage>,
}

type Key = (u64, Option<u64>);

struct IndexBuilder<'a> {
    reader: &'a DtReader,
    metadata: &'a Metadata,
    /// The offset for the next packet in memory.
    behind: u64,
    streams: BTreeMap<Key, Vec<(Packet, Part)>>,
    /// The number of packets of each stream outside the slots.
    edges: BTreeMap<Key, u8>,
    damage: Vec<Damage>,
    /// Number of damaged places that are not reported one by one.
    unreported: u64,
}

impl Index {
    /// Reads all slots, and the empty packets in `edges`.
    pub(super) fn of(reader: &DtReader, metadata: &Metadata, edges: &[u8]) -> Self {
        let behind = reader.file_size().max(reader.header().postamble_location());
        let (streams, edges_of) = (BTreeMap::new(), BTreeMap::new());
        let mut indexing =
            IndexBuilder { reader, metadata, behind, streams, edges: edges_of, damage: Vec::new(), unreported: 0 };
        for slot in reader.slots() {
            match slot {
                Ok(slot) => indexing.slot(&slot),
                Err(error) => indexing.slot_error(&error),
            }
        }
        indexing.edges(edges);
        let streams = std::mem::take(&mut indexing.streams);
        let streams = streams.into_values().map(|packets| indexing.stream(packets)).collect();
        Self { streams, damage: indexing.into_damage() }
    }
}

impl IndexBuilder<'_> {
    fn damaged(&mut self, offset: u64, reason: String) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { file: self.reader.path().to_owned(), offset, reason });
        } else {
            self.unreported += 1;
        }
    }

    /// The damage, with a count of the slots that were not reported one by one.
    fn into_damage(self) -> Vec<Damage> {
        let mut damage = self.damage;
        if let Some(last) = damage.last().filter(|_| self.unreported > 0) {
            let reason = format!("and {} more places are damaged", self.unreported);
            damage.push(Damage { reason, ..last.clone() });
        }
        damage
    }

    fn slot_error(&mut self, error: &datatrace::ReadError) {
        match error {
            datatrace::ReadError::Damaged { slot, offset, reason, .. } => {
                self.damaged(*offset, format!("slot {slot}: {reason}"));
            }
            other => self.damaged(0, other.to_string()),
        }
    }

    fn slot(&mut self, slot: &Slot<'_>) {
        let mut bytes = Vec::new();
        if let Err(error) = slot.reader().take(HEAD).read_to_end(&mut bytes) {
            return self.damaged(slot.offset(), format!("cannot be read: {error}"));
        }
        match self.packet(&bytes, u64::from(slot.len())) {
            Ok(packet) => {
                let bytes = PacketBytes::Slot(slot.place());
                self.add(packet, slot.offset(), bytes);
            }
            Err(reason) => self.damaged(slot.offset(), format!("slot {}: {reason}", slot.index())),
        }
    }

    /// The header of a packet of `length` bytes, which begins with `bytes`.
    fn packet(&self, bytes: &[u8], length: u64) -> Result<Packet, String> {
        let mut source = bytes;
        let mut state = State::new(self.metadata.slots());
        let packet = Packet::open(&mut source, self.metadata, &mut state, 0)
            .map_err(|fault| format!("it does not hold a packet of this trace: {}", fault.in_header()))?;
        if packet.size() != length {
            return Err(format!("its packet claims {} bytes, and has {length}", packet.size()));
        }
        Ok(packet)
    }

    fn add(&mut self, packet: Packet, offset: u64, bytes: PacketBytes) {
        let part = Part::new(&packet, offset, bytes);
        self.streams.entry((packet.class.id, packet.instance)).or_default().push((packet, part));
    }

    /// Adds consecutive packets. Each stream may have one before its packets in slots, and one after them.
    fn edges(&mut self, mut bytes: &[u8]) {
        let mut too_many = false;
        while !bytes.is_empty() {
            let size = declared_size(bytes, self.metadata);
            let (packet, rest) = bytes.split_at(size.min(bytes.len() as u64) as usize);
            match self.packet(packet, packet.len() as u64) {
                Ok(found) if !packet.is_empty() => too_many |= !self.edge(found, packet),
                Ok(_) => return,
                Err(reason) => {
                    let offset = self.behind;
                    return self.damaged(offset, format!("a stream's first or last packet: {reason}"));
                }
            }
            bytes = rest;
        }
        if too_many {
            self.damaged(self.behind, format!("a stream has more than {MAX_EDGES} packets outside the slots"));
        }
    }

    /// Adds a packet to its stream. Returns `false` if the packet does not fit the stream.
    fn edge(&mut self, packet: Packet, bytes: &[u8]) -> bool {
        let key = (packet.class.id, packet.instance);
        let edges = self.edges.entry(key).or_default();
        if *edges == MAX_EDGES {
            return false;
        }
        *edges += 1;
        let part = self.held(&packet, bytes);
        let packets = self.streams.entry(key).or_default();
        let in_front = packets.first().is_some_and(|(first, _)| packet.sequence < first.sequence);
        let behind = packets.last().is_none_or(|(last, _)| packet.sequence > last.sequence);
        if in_front {
            packets.insert(0, (packet, part));
        } else if behind {
            packets.push((packet, part));
        }
        true
    }

    fn held(&mut self, packet: &Packet, bytes: &[u8]) -> Part {
        let offset = self.behind;
        self.behind = offset.saturating_add(bytes.len() as u64);
        Part::new(packet, offset, PacketBytes::Held(bytes.into()))
    }

    /// A stream begins with an empty packet of number 0, so that packets missing after it are known to be overwritten. If the process was killed
    /// before that packet was written, it is made here.
    fn stream(&mut self, mut packets: Vec<(Packet, Part)>) -> DtStream {
        let first = packets.first().filter(|(packet, _)| packet.sequence.is_some_and(|sequence| sequence > 0));
        if let Some(bytes) = first.and_then(|(packet, part)| self.beginning(packet, part))
            && let Ok(packet) = self.packet(&bytes, bytes.len() as u64)
        {
            let part = self.held(&packet, &bytes);
            packets.insert(0, (packet, part));
        }
        let (packet, _) = &packets[0];
        let (class, instance, begin) = (Arc::clone(&packet.class), packet.instance, packet.begin.unwrap_or(0));
        DtStream {
            name: stream_name(&format!("stream{}", class.id), instance),
            class,
            instance,
            begin,
            parts: packets.into_iter().map(|(_, part)| part).collect(),
        }
    }

    /// The packet with which the stream of `packet` begins, if packets have the layout written by the tracer.
    fn beginning(&self, packet: &Packet, part: &Part) -> Option<Vec<u8>> {
        let mut bytes = [0; HEADER_SIZE];
        match &part.bytes {
            PacketBytes::Held(held) => bytes.copy_from_slice(held.get(..HEADER_SIZE)?),
            PacketBytes::Slot(place) => {
                bytes.copy_from_slice(self.reader.bytes_at(place).ok()??.get(..HEADER_SIZE)?);
            }
        }
        let head = PacketHeader::parse(&bytes);
        let same = (head.magic, Some(head.stream.uuid)) == (PACKET_MAGIC, packet.uuid)
            && (u64::from(head.stream.class), Some(head.stream.instance)) == (packet.class.id, packet.instance)
            && (Some(head.sequence), Some(head.events_before)) == (packet.sequence, packet.events_before)
            && (head.content_bits, head.packet_bits) == (packet.content_bits, packet.packet_bits)
            && packet.header_bits == HEADER_SIZE as u64 * 8;
        same.then(|| sealed(PacketHeader::empty(head.stream, head.begin).bytes()).to_vec())
    }
}

/// Size of the packet at the beginning of `bytes` according to its header; the length of `bytes` if the header has none.
fn declared_size(bytes: &[u8], metadata: &Metadata) -> u64 {
    let mut source = bytes;
    let packet = Packet::open(&mut source, metadata, &mut State::new(metadata.slots()), 0);
    packet.map_or(bytes.len() as u64, |packet| packet.size().max(1))
}

/// The file name of a stream.
pub(crate) fn stream_name(channel: &str, instance: Option<u64>) -> String {
    // The channel's name comes from a file and becomes part of a path.
    let channel = channel.replace(['/', '\0'], "_");
    instance.map_or_else(|| channel.clone(), |instance| format!("{channel}_{instance}"))
}
