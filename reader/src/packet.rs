//! A packet: its header and context, then its events.

use std::path::Path;
use std::sync::Arc;

use crate::checksum::{self, ChecksumResult, has_place};
use crate::decode::{Decoder, Fault, State};
use crate::event::{Event, Stream};
use crate::loss::Damage;
use crate::metadata::types::{StructType, Type};
use crate::metadata::{EventClass, Metadata, StreamClass};
use crate::record;
use crate::source::Source;
use crate::value::{StructValue, Value};
use tracepoint_ring::channel::PACKET_MAGIC;

/// The header and the context of a packet. Times are in cycles of the stream's clock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Packet {
    /// Its start in the source, in bytes.
    pub offset: u64,
    /// The trace's UUID, if the header has it.
    pub uuid: Option<[u8; 16]>,
    /// The stream class.
    pub class: Arc<StreamClass>,
    /// The instance of the class.
    pub instance: Option<u64>,
    /// Its begin time, in cycles of the stream's clock.
    pub begin: Option<u64>,
    /// Its end time as stored, in cycles: 0 if it was never closed.
    pub end: Option<u64>,
    /// Bits from its start to the end of its last event.
    pub content_bits: u64,
    /// Bits from its start to the next packet; a multiple of 8.
    pub packet_bits: u64,
    /// Its number in the stream.
    pub sequence: Option<u64>,
    /// Number of events that the stream had discarded when the packet was closed.
    pub discarded: Option<u64>,
    /// The thread whose events it holds.
    pub tid: Option<u64>,
    /// Number of events recorded to the stream before this packet.
    pub events_before: Option<u64>,
    /// All of its context.
    pub context: Option<Arc<StructValue>>,
    /// Bits from its start to its first event.
    pub header_bits: u64,
    /// True if it has a checksum that matches its bytes; `None` if it was not checked, or is a packet of another tracer.
    pub has_checksum: Option<bool>,
}

impl Packet {
    /// Size in bytes, padding included.
    pub fn size(&self) -> u64 {
        self.packet_bits / 8
    }

    /// Size in bits of packet numbers, 1 to 64.
    pub(crate) fn sequence_bits(&self) -> u8 {
        self.class.packet_context.as_ref().map_or(64, |ty| width_of(ty, "packet_seq_num"))
    }

    /// True if it has a place for a checksum.
    pub(crate) fn is_checkable(&self, metadata: &Metadata) -> bool {
        has_place(metadata, &self.class, self.header_bits)
    }

    /// Reads header and context of the packet at `offset`. The clock in `state` becomes the packet's begin.
    pub(crate) fn open<S: Source>(
        source: &mut S,
        metadata: &Metadata,
        state: &mut State,
        offset: u64,
    ) -> Result<Self, Fault> {
        let available = source.length().saturating_sub(offset).saturating_mul(8);
        let before = state.clock;
        let mut decoder = Decoder::new(source, state, offset, 0, available);
        let header = match metadata.packet_header() {
            Some(ty) => Some(decoder.structure(ty)?),
            None => None,
        };
        let named = |name: &str| header.as_ref().and_then(|h| h.get(name));
        let number = |name: &str| named(name).and_then(Value::as_u64);
        if let Some(magic) = number("magic").filter(|magic| *magic != u64::from(PACKET_MAGIC)) {
            let reason = format!("a packet should start here, with {PACKET_MAGIC:#x}; found {magic:#x}");
            return Err(Fault { bit: 0, reason, short: false });
        }
        let class = match number("stream_id") {
            Some(id) => metadata.stream(id).ok_or_else(|| {
                decoder.fault(format!("the packet belongs to stream {id}, which the metadata does not declare"))
            })?,
            None => metadata.streams().next().ok_or_else(|| decoder.fault("the metadata declares no stream"))?,
        };
        let uuid = named("uuid").and_then(Value::as_bytes).and_then(|bytes| bytes.try_into().ok());
        let instance = number("stream_instance_id");
        let context = match &class.packet_context {
            Some(ty) => Some(Arc::new(decoder.structure(ty)?)),
            None => None,
        };
        let header_bits = decoder.at;
        let number = |name: &str| context.as_ref().and_then(|c| c.get(name)).and_then(Value::as_u64);
        let packet_size = number("packet_size");
        let content_size = number("content_size");
        let content_bits = content_size.or(packet_size).unwrap_or(available);
        let packet_bits = packet_size.or(content_size).unwrap_or(available);
        if packet_bits % 8 != 0 || content_bits > packet_bits || content_bits < header_bits {
            return Err(decoder.fault(format!(
                "the packet's sizes contradict each other: {header_bits} bits of header, {content_bits} of content, \
                 {packet_bits} in all"
            )));
        }

        // Reading the context has advanced the clock to the last time in it.
        let (begin, end) = (number("timestamp_begin"), number("timestamp_end"));
        let width = |name: &str| class.packet_context.as_ref().map_or(64, |ty| width_of(ty, name));
        state.clock = before;
        if let Some(begin) = begin {
            state.tick(begin, width("timestamp_begin"));
        }
        let begin = begin.map(|_| state.clock);
        let end = end.map(|end| match width("timestamp_end") {
            64 => end,
            bits => {
                let start = state.clock;
                state.tick(end, bits);
                std::mem::replace(&mut state.clock, start)
            }
        });
        Ok(Self {
            offset,
            uuid,
            class: Arc::clone(class),
            instance,
            begin,
            end,
            content_bits,
            packet_bits,
            sequence: number("packet_seq_num"),
            discarded: number("events_discarded"),
            tid: number("tid"),
            events_before: number("events_before"),
            context,
            header_bits,
            has_checksum: None,
        })
    }
}

/// Size in bits of the integer called `name`.
fn width_of(ty: &StructType, name: &str) -> u8 {
    let field = ty.fields.iter().find(|f| f.name() == name);
    match field.map(|f| &f.ty) {
        Some(Type::Integer(integer) | Type::Enum(integer, _)) => integer.bits,
        _ => 64,
    }
}

/// A position among the events of one packet.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    at: u64,
    end: u64,
    /// Bits of the packet's content that are missing from the source.
    missing: u64,
}

impl Body {
    pub(crate) fn new(packet: &Packet, source: &impl Source) -> Self {
        let available = source.length().saturating_sub(packet.offset).saturating_mul(8);
        let end = packet.content_bits.min(available);
        Self { at: packet.header_bits.min(end), end, missing: packet.content_bits - end }
    }

    /// The offset and the number of the remaining bytes; `None` if the position is not at a byte boundary.
    pub(crate) fn bytes(&self) -> Option<(u64, u64)> {
        self.at.is_multiple_of(8).then_some((self.at / 8, (self.end - self.at) / 8))
    }

    /// Skips whole events of `bytes` bytes in total.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.at += bytes * 8;
    }

    /// The next event; `None` at the end.
    pub(crate) fn event<S: Source>(
        &mut self,
        source: &mut S,
        state: &mut State,
        packet: &Packet,
        stream: &Arc<Stream>,
    ) -> Result<Option<Event>, Fault> {
        if self.at >= self.end {
            return Ok(None);
        }
        let start = self.at;
        if let Some((at, left)) = self.bytes() {
            let record = record::decode::next(source, packet.offset, (at, at + left), state, &stream.class);
            if let Some(record::decode::Record { class, size, stream_context, context, fields }) = record {
                let time = (time_of(stream, state.clock, start)?, state.clock);
                self.pass(size as u64);
                let parts = (stream_context, context, fields);
                return Ok(Some(event_of(stream, class, packet, time, parts)));
            }
        }
        let mut decoder = Decoder::new(source, state, packet.offset, start, self.end);
        let mut id = None;
        if let Some(ty) = &stream.class.event_header {
            decoder.header(ty, &mut id)?;
        }
        let class = class_of(&stream.class, id).ok_or_else(|| {
            let id = id.unwrap_or(0);
            let name = &stream.class.id;
            let reason = format!("an event has the id {id}, which the metadata does not declare in stream {name}");
            Fault { bit: start, reason, short: false }
        })?;
        let cycles = decoder.clock();
        let mut part = |ty: &Option<Arc<StructType>>| match ty {
            Some(ty) => decoder.structure(ty).map(Some),
            None => Ok(None),
        };
        let stream_context = part(&stream.class.event_context)?;
        let context = part(&class.context)?;
        let fields = part(&class.fields)?;
        self.at = decoder.at;
        if self.at == start {
            return Err(decoder.fault("an event takes no space"));
        }
        let time = (time_of(stream, cycles, start)?, cycles);
        Ok(Some(event_of(stream, class, packet, time, (stream_context, context, fields))))
    }

    /// Converts a fault into damage of `file`.
    pub(crate) fn damage(&self, fault: Fault, packet: &Packet, file: &Path) -> Damage {
        let missing = self.missing.div_ceil(8);
        // The whole event is cut off, whichever of its values contains the end of the bytes.
        let bit = if fault.short { self.at } else { fault.bit };
        let reason = match (fault.short, missing) {
            (true, 0) => "the packet's content ends within an event".to_owned(),
            (true, _) => format!("the file ends within an event, {missing} bytes before the packet's content does"),
            (false, _) => fault.reason,
        };
        Damage { file: file.to_owned(), offset: packet.offset + bit / 8, reason }
    }
}

/// Times beyond 64 bits of nanoseconds would be clamped to the last representable one.
fn time_of(stream: &Stream, cycles: u64, bit: u64) -> Result<i64, Fault> {
    stream.checked_nanoseconds(cycles).ok_or_else(|| {
        let reason =
            format!("the time of an event, {cycles} cycles of its clock, is outside of the years 1678 to 2261");
        Fault { bit, reason, short: false }
    })
}

/// Builds an event from the values of the stream's context, its own context, and its fields.
fn event_of(
    stream: &Arc<Stream>,
    class: &Arc<EventClass>,
    packet: &Packet,
    (time_ns, cycles): (i64, u64),
    (stream_context, context, fields): (Option<StructValue>, Option<StructValue>, Option<StructValue>),
) -> Event {
    Event {
        time_ns,
        cycles,
        stream: Arc::clone(stream),
        class: Arc::clone(class),
        packet_context: packet.context.clone(),
        stream_context,
        context,
        fields,
    }
}

fn class_of(stream: &StreamClass, id: Option<u64>) -> Option<&Arc<EventClass>> {
    match id {
        Some(id) => stream.events.get(&id),
        None => stream.events.values().next(),
    }
}

/// Decodes one packet that is in memory.
///
/// Iterating returns the events. A malformed one is the last item, with the reason.
#[derive(Debug)]
pub struct PacketDecoder<'a> {
    bytes: &'a [u8],
    state: State,
    packet: Packet,
    stream: Arc<Stream>,
    body: Body,
    done: bool,
}

impl<'a> PacketDecoder<'a> {
    /// Reads the header of the packet at the start of `bytes`. Bytes after the packet are ignored.
    ///
    /// # Errors
    /// [`Damage`] if there is no packet of this trace, or its bytes do not match its checksum.
    pub fn new(metadata: &Metadata, bytes: &'a [u8]) -> Result<Self, Damage> {
        let file = Path::new("packet");
        let mut state = State::new(metadata.slots());
        let mut source = bytes;
        let packet = Packet::open(&mut source, metadata, &mut state, 0).map_err(|fault| Damage {
            file: file.to_owned(),
            offset: fault.bit / 8,
            reason: fault.in_header(),
        })?;
        let whole = usize::try_from(packet.size()).ok().and_then(|size| bytes.get(..size));
        let checked = whole.map_or(ChecksumResult::None, checksum::check);
        if let Some(reason) = checked.damage().filter(|_| packet.is_checkable(metadata)) {
            return Err(Damage { file: file.to_owned(), offset: 0, reason });
        }
        let stream = Stream {
            metadata: metadata.clone(),
            class: Arc::clone(&packet.class),
            instance: packet.instance,
            file: file.to_owned(),
        };
        let body = Body::new(&packet, &source);
        Ok(Self { bytes, state, packet, stream: Arc::new(stream), body, done: false })
    }

    /// Header and context of the packet.
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    /// The stream it belongs to.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// The offset of the next event, in bytes from the start of the packet.
    pub(crate) fn offset(&self) -> usize {
        (self.body.at / 8) as usize
    }
}

impl Iterator for PacketDecoder<'_> {
    type Item = Result<Event, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.body.event(&mut self.bytes, &mut self.state, &self.packet, &self.stream);
        match next {
            Ok(Some(event)) => Some(Ok(event)),
            Ok(None) => {
                self.done = true;
                let missing = self.body.missing.div_ceil(8);
                (missing > 0).then(|| {
                    Err(Damage {
                        file: self.stream.file.clone(),
                        offset: self.bytes.len() as u64,
                        reason: format!("the bytes end {missing} bytes before the packet's content does"),
                    })
                })
            }
            Err(fault) => {
                self.done = true;
                Some(Err(self.body.damage(fault, &self.packet, &self.stream.file)))
            }
        }
    }
}
