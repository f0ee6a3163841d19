//! Sizes of records by event: sufficient to find the record boundaries of a packet without decoding values.

use super::layout::{ClassLayouts, TIME_BITS, fixed};
use crate::decode::extend;
use crate::metadata::types::{ByteOrder, Field, StructType};
use crate::metadata::{EventClass, Metadata, StreamClass};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;
use tracepoint_ring::channel::HEADER_SIZE;

/// The sizes of the records of a trace with the tracer's layout.
#[derive(Clone, Debug, Default)]
pub struct RecordSizes {
    classes: HashMap<u32, ClassLayouts>,
}

impl RecordSizes {
    /// The sizes of the records described by `metadata`; `None` if packets or records have another layout.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        if metadata.byte_order() != ByteOrder::Little || !has_tracer_header(metadata) {
            return None;
        }
        let layouts_of = |class: &Arc<StreamClass>| {
            let layouts = ClassLayouts::of(class);
            let is_known = |(id, event): (&u64, &Arc<EventClass>)| {
                event.context.is_none() && u16::try_from(*id).is_ok_and(|id| layouts.get(id).is_some())
            };
            let is_whole = has_tracer_layout(class) && class.events.iter().all(is_known);
            Some((u32::try_from(class.id).ok().filter(|_| is_whole)?, layouts))
        };
        metadata.streams().map(layouts_of).collect::<Option<_>>().map(|classes| Self { classes })
    }

    /// The records of `packet` from offset `at` on. `time` is the time of the previous record, or of the packet's begin.
    pub fn records<'a>(&'a self, class: u32, packet: &'a [u8], at: usize, time: u64) -> Records<'a> {
        Records { layouts: self.classes.get(&class), packet, at: at.max(HEADER_SIZE), time }
    }
}

/// Iterates over the records of a packet.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    layouts: Option<&'a ClassLayouts>,
    packet: &'a [u8],
    at: usize,
    time: u64,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its event's id.
    pub id: u16,
    /// Offset of its first byte in the packet.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
    /// Its time, in cycles of the trace's clock.
    pub time: u64,
}

/// The next bytes of the packet are not a record described by the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the packet has bytes that are not a record of the metadata")]
pub struct Unreadable;

impl Iterator for Records<'_> {
    type Item = Result<Record, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.packet.len() {
            return None;
        }
        let start = self.at;
        let rest = &self.packet[start..];
        let word = rest.first_chunk().map(|word| u64::from_le_bytes(*word));
        let size = word.and_then(|word| self.layouts?.get(word as u16)?.1.size(rest));
        let (Some(word), Some(size)) = (word, size.filter(|size| *size <= rest.len())) else {
            self.at = self.packet.len();
            return Some(Err(Unreadable));
        };
        self.at += size;
        self.time = extend_time(self.time, word >> 16);
        Some(Ok(Record { id: word as u16, start, end: self.at, time: self.time }))
    }
}

/// The first time at or after `before` whose lower 48 bits are `low`.
pub fn extend_time(before: u64, low: u64) -> u64 {
    extend(before, low, TIME_BITS)
}

fn has_tracer_layout(class: &StreamClass) -> bool {
    let header = class.event_header.as_ref().map(|ty| shape(ty));
    class.event_context.is_none()
        && has_tracer_context(class)
        && header.is_some_and(|shape| shape == ["id 16", "timestamp 48"])
}

/// True if the header of a packet has the members written by the tracer.
pub(crate) fn has_tracer_header(metadata: &Metadata) -> bool {
    let header = metadata.packet_header().map(|ty| shape(ty));
    header.is_some_and(|shape| shape == ["magic 32", "uuid 128", "stream_id 32", "stream_instance_id 64"])
}

/// The same for the context of a packet, of a stream per thread or per CPU.
pub(crate) fn has_tracer_context(class: &StreamClass) -> bool {
    let context = class.packet_context.as_ref().map(|ty| shape(ty));
    let context_is = |owner| {
        [
            "timestamp_begin 64",
            "timestamp_end 64",
            "content_size 64",
            "packet_size 64",
            "packet_seq_num 64",
            "events_discarded 64",
            owner,
            "events_before 64",
        ]
    };
    context.is_some_and(|shape| shape == context_is("tid 32") || shape == context_is("cpu_id 32"))
}

/// Name and size in bits of each member of a structure.
fn shape(ty: &StructType) -> Vec<String> {
    let size = |field: &Field| fixed(&field.ty).map_or(0, |bytes| bytes * 8);
    ty.fields.iter().map(|field| format!("{} {}", field.name(), size(field))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_wrap() {
        let span = 1 << TIME_BITS;
        assert_eq!(extend_time(5, 7), 7);
        assert_eq!(extend_time(7, 7), 7);
        assert_eq!(extend_time(7, 5), span + 5);
        assert_eq!(extend_time(3 * span + 7, 8), 3 * span + 8);
        assert_eq!(extend_time(3 * span + 7, 6), 4 * span + 6);
    }
}
