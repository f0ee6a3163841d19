//! One stream file that is written: packets are taken in order, each once, and only if it fits behind the one before.

use super::RecoverError;
use super::outputs::StreamId;
use super::target::Target;
use crate::account::StreamAccount;
use crate::metadata::Metadata;
use crate::packet::PacketDecoder;
use crate::ring::head::{Head, put};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

/// No packet has a higher number.
const MAX_SEQUENCE: u64 = u64::MAX / 2;

/// What was decoded of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) count: u64,
    /// The time of the last one.
    pub(crate) last: u64,
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was written; the stream has so many records up to its end.
    Written(u64),
    /// It has no records; the stream has so many before it.
    Empty(u64),
    /// It, or one after it, was taken before.
    Known,
    /// It is no packet that fits here.
    Refused(String),
}

/// What is in a packet.
struct Content {
    records: u64,
    last: u64,
    decoded: BTreeMap<u64, Decoded>,
}

impl Content {
    /// Decodes a packet.
    fn of(metadata: &Metadata, id: StreamId, bytes: &[u8], head: &Head) -> Result<Self, String> {
        let decoder = PacketDecoder::new(metadata, bytes).map_err(|damage| damage.reason)?;
        let packet = decoder.packet();
        let as_described = packet.uuid == Some(id.uuid)
            && packet.class.id == u64::from(id.class)
            && packet.instance == Some(id.instance)
            && (packet.begin, packet.end) == (Some(head.begin), Some(head.end))
            && (packet.content_bits, packet.packet_bits) == (head.content, head.size)
            && (packet.sequence, packet.discarded) == (Some(head.sequence), Some(head.discarded))
            && packet.events_before == Some(head.before)
            && packet.tid.is_none_or(|tid| tid == u64::from(head.tid))
            && packet.size() == bytes.len() as u64;
        if !as_described {
            return Err("the metadata describes another packet than the tracer writes".to_owned());
        }
        let mut content = Self { records: 0, last: head.begin, decoded: BTreeMap::new() };
        for event in decoder {
            let event = event.map_err(|damage| format!("byte {} of the packet: {}", damage.offset, damage.reason))?;
            if event.cycles < content.last {
                return Err("an event is earlier than the one before it, or than the packet".to_owned());
            }
            content.records += 1;
            content.last = event.cycles;
            let found = content.decoded.entry(event.class.id).or_default();
            found.count += 1;
            found.last = event.cycles;
        }
        Ok(content)
    }
}

/// Checks that the metadata describes the packets that a tracer writes.
pub(crate) fn check_layout(metadata: &Metadata, uuid: [u8; 16], class: u32) -> Result<(), String> {
    // Each field has a value of its own, which needs all bits of it, the packet 8 bytes of padding.
    let value = |last: u8| u64::from_le_bytes([last, 0xe1, 0xd2, 0xc3, 0xb4, 0xa5, 0x96, 0xf7]);
    let id = StreamId { uuid, class, instance: value(5) };
    let nothing = empty(id, value(1));
    let head = Head {
        end: value(2),
        size: nothing.size + 64,
        sequence: value(3),
        discarded: value(4),
        tid: 0xf5a6_9788,
        before: value(6),
        ..nothing
    };
    let bytes = [&head.bytes()[..], &[0; 8]].concat();
    Content::of(metadata, id, &bytes, &head).map(|_| ())
}

/// A stream file.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    metadata: &'a Metadata,
    target: &'a Target,
    id: StreamId,
    name: String,
    file: Option<File>,
    opened: u64,
    /// The end of the last packet.
    pub(super) end: u64,
    /// Records up to there, lost ones included.
    pub(super) records: u64,
    sequence: u64,
    pub(super) discarded: u64,
    packets: u64,
    pub(super) written: u64,
    pub(super) decoded: BTreeMap<u64, Decoded>,
}

impl<'a> Stream<'a> {
    /// A stream whose channel was opened at `opened`. Its file is made with the first packet.
    pub(super) fn new(metadata: &'a Metadata, target: &'a Target, id: StreamId, name: String, opened: u64) -> Self {
        Self {
            metadata,
            target,
            id,
            name,
            file: None,
            opened,
            end: opened,
            records: 0,
            sequence: 0,
            discarded: 0,
            packets: 0,
            written: 0,
            decoded: BTreeMap::new(),
        }
    }

    /// Takes the next packet. One that is open is completed; `open` is the stream's counter of discarded events then.
    pub(super) fn take(&mut self, mut bytes: Vec<u8>, open: Option<u64>) -> Result<Taken, RecoverError> {
        let mut head = Head::parse(&bytes);
        if head.sequence <= self.sequence {
            return Ok(Taken::Known);
        }
        if let Some(discarded) = open {
            head.size = head.content;
            head.end = head.begin;
            head.discarded = discarded.max(self.discarded);
            put(&mut bytes, &head);
        }
        let content = match Content::of(self.metadata, self.id, &bytes, &head) {
            Ok(content) => content,
            Err(reason) => return Ok(Taken::Refused(reason)),
        };
        if open.is_some() {
            head.end = content.last;
            put(&mut bytes, &head);
        }
        let after = match self.fits(&head, &content) {
            Ok(after) => after,
            Err(reason) => return Ok(Taken::Refused(reason.to_owned())),
        };
        if content.records == 0 {
            return Ok(Taken::Empty(after));
        }
        self.write(&bytes)?;
        self.end = head.end;
        self.records = after;
        self.sequence = head.sequence;
        self.discarded = head.discarded;
        self.written += content.records;
        for (id, found) in content.decoded {
            let sum = self.decoded.entry(id).or_default();
            sum.count += found.count;
            sum.last = found.last;
        }
        Ok(Taken::Written(after))
    }

    /// Whether a packet fits behind what was written; how many records the stream has up to its end then.
    fn fits(&self, head: &Head, content: &Content) -> Result<u64, &'static str> {
        if head.sequence > MAX_SEQUENCE {
            return Err("its packet_seq_num is beyond all reason");
        }
        if head.begin < self.end {
            return Err("it begins before the packet before it ends");
        }
        if head.end < content.last {
            return Err("it ends before its last event");
        }
        if head.before < self.records {
            return Err("its events_before is less than what came before it");
        }
        if head.discarded < self.discarded {
            return Err("its events_discarded went back");
        }
        head.before.checked_add(content.records).ok_or("its events_before is beyond all reason")
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RecoverError> {
        let path = self.target.path().join(&self.name);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = self.target.create_file(&self.name)?;
                let first = Head { end: self.opened, ..empty(self.id, self.opened) };
                file.write_all(&first.bytes()).map_err(RecoverError::write(&path))?;
                self.packets += 1;
                none.insert(file)
            }
        };
        file.write_all(bytes).map_err(RecoverError::write(&path))?;
        self.packets += 1;
        Ok(())
    }

    /// Ends the stream with an empty packet that has its final counts. `None` if it was never used.
    pub(super) fn finish(mut self, ended: Ended) -> Result<Option<StreamAccount>, RecoverError> {
        if ended.records == 0 && ended.discarded == 0 {
            return Ok(None);
        }
        let last = Head {
            sequence: self.sequence.max(ended.closed).saturating_add(1),
            discarded: ended.discarded,
            before: ended.records,
            ..empty(self.id, self.end.max(ended.time))
        };
        self.write(&last.bytes())?;
        Ok(Some(StreamAccount {
            instance: self.id.instance,
            file: self.name,
            recorded: ended.records,
            packets: self.packets,
            written: self.written,
            discarded: ended.discarded,
            ..StreamAccount::default()
        }))
    }
}

/// The final counts of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Records that were committed, lost ones included.
    pub(super) records: u64,
    /// Packets that were closed.
    pub(super) closed: u64,
    pub(super) discarded: u64,
    /// No earlier than this.
    pub(super) time: u64,
}

/// A packet without records.
fn empty(id: StreamId, time: u64) -> Head {
    Head::empty(id.uuid, id.class, id.instance, time)
}
