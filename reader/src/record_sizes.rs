//! Sizes of records by event: enough to find the record boundaries of a packet without decoding values.

use crate::decode::extend;
use crate::metadata::types::{ByteOrder, Choice, Field, Length, StructType, Type, VariantType};
use crate::metadata::{Metadata, StreamClass};
use std::collections::HashMap;
use thiserror::Error;
use tracepoint_ring::channel::HEADER_SIZE;

/// The size of a record's header word: 16 bits of id, 48 bits of time.
const WORD: usize = 8;
/// The bits of the time in the header word.
const TIME_BITS: u8 = 48;

/// The sizes of the records of a trace that has the layout that the tracer writes.
#[derive(Clone, Debug, Default)]
pub struct RecordSizes {
    classes: HashMap<u32, Vec<RecordSize>>,
}

/// The size of the records of one event, header word included.
#[derive(Clone, Debug)]
enum RecordSize {
    Unknown,
    Fixed(usize),
    Varying(Box<[Step]>),
}

#[derive(Clone, Debug)]
enum Step {
    /// A fixed number of bytes.
    Fixed(usize),
    /// Bytes up to and including a NUL.
    Text,
    /// Elements of this size; their number is in the four bytes before.
    Sequence(usize),
    /// What follows is chosen by the byte before: its index in this list.
    Variant(Box<[Self]>),
}

impl RecordSizes {
    /// The sizes of the records that `metadata` describes; `None` if packets or records have another layout.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let is_known = metadata.byte_order() == ByteOrder::Little && has_tracer_header(metadata);
        let mut classes = HashMap::new();
        for class in metadata.streams() {
            if !is_known || !has_tracer_layout(class) {
                return None;
            }
            let mut sizes = Vec::new();
            for (id, event) in &class.events {
                let id = usize::from(u16::try_from(*id).ok()?);
                sizes.resize(sizes.len().max(id + 1), RecordSize::Unknown);
                sizes[id] = match (&event.context, &event.fields) {
                    (None, None) => RecordSize::Fixed(WORD),
                    (None, Some(fields)) => record(fields)?,
                    (Some(_), _) => return None,
                };
            }
            classes.insert(u32::try_from(class.id).ok()?, sizes);
        }
        Some(Self { classes })
    }

    /// The records of `packet` from offset `at` on. `time` is the time of the record before, or of the packet's begin.
    pub fn records<'a>(&'a self, class: u32, packet: &'a [u8], at: usize, time: u64) -> Records<'a> {
        let sizes = self.classes.get(&class).map_or(&[][..], Vec::as_slice);
        Records { sizes, packet, at: at.max(HEADER_SIZE), time }
    }
}

/// Iterates over the records of a packet.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    sizes: &'a [RecordSize],
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
    /// Offset behind its last byte.
    pub end: usize,
    /// Its time, in cycles of the trace's clock.
    pub time: u64,
}

/// The next bytes of the packet are not a record that the metadata describes.
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
        let size = word.and_then(|word| size_of(self.sizes.get((word & 0xffff) as usize)?, rest));
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

#[inline]
fn size_of(size: &RecordSize, record: &[u8]) -> Option<usize> {
    match size {
        RecordSize::Fixed(size) => Some(*size),
        RecordSize::Varying(steps) => steps.iter().try_fold(WORD, |at, step| behind(step, record, at)),
        RecordSize::Unknown => None,
    }
}

/// The offset behind the bytes of a step that begins at `at`.
#[inline]
fn behind(step: &Step, record: &[u8], at: usize) -> Option<usize> {
    match step {
        Step::Fixed(size) => Some(at + size),
        Step::Text => Some(at + record.get(at..)?.iter().position(|byte| *byte == 0)? + 1),
        Step::Sequence(element) => {
            let count = u32::from_le_bytes(*record.get(at - 4..)?.first_chunk()?) as usize;
            at.checked_add(count.checked_mul(*element)?)
        }
        // An option is no variant: the depth is 1.
        Step::Variant(options) => behind(options.get(usize::from(*record.get(at - 1)?))?, record, at),
    }
}

fn has_tracer_layout(class: &StreamClass) -> bool {
    let header = class.event_header.as_ref().map(|ty| shape(ty));
    class.event_context.is_none()
        && has_tracer_context(class)
        && header.is_some_and(|shape| shape == ["id 16", "timestamp 48"])
}

/// Whether the header of a packet has the members that the tracer writes.
pub(crate) fn has_tracer_header(metadata: &Metadata) -> bool {
    let header = metadata.packet_header().map(|ty| shape(ty));
    header.is_some_and(|shape| shape == ["magic 32", "uuid 128", "stream_id 32", "stream_instance_id 64"])
}

/// The same for the context of a packet.
pub(crate) fn has_tracer_context(class: &StreamClass) -> bool {
    let context = class.packet_context.as_ref().map(|ty| shape(ty));
    let context_is = [
        "timestamp_begin 64",
        "timestamp_end 64",
        "content_size 64",
        "packet_size 64",
        "packet_seq_num 64",
        "events_discarded 64",
        "tid 32",
        "events_before 64",
    ];
    context.is_some_and(|shape| shape == context_is)
}

/// Name and size in bits of each member of a structure.
fn shape(ty: &StructType) -> Vec<String> {
    let size = |field: &Field| fixed(&field.ty).map_or(0, |bytes| bytes * 8);
    ty.fields.iter().map(|field| format!("{} {}", field.name(), size(field))).collect()
}

/// The size in bytes of a type of fixed size; `None` for others, and for sizes that are not whole bytes.
fn fixed(ty: &Type) -> Option<usize> {
    let bits = match ty {
        Type::Integer(integer) | Type::Enum(integer, _) => usize::from(integer.bits),
        Type::Float(float) => usize::from(float.bits),
        Type::Array(array) => match array.length {
            Length::Fixed(count) => fixed(&array.element)?.checked_mul(usize::try_from(count).ok()?)?.checked_mul(8)?,
            Length::Field(_) => return None,
        },
        _ => return None,
    };
    (bits % 8 == 0).then_some(bits / 8)
}

fn record(fields: &StructType) -> Option<RecordSize> {
    let mut steps = vec![Step::Fixed(0)];
    let mut before: Option<&Field> = None;
    for field in &fields.fields {
        if field.ty.align() > 8 {
            return None;
        }
        let step = match (&field.ty, fixed(&field.ty), before) {
            (_, Some(size), _) => Step::Fixed(size),
            (Type::String, ..) => Step::Text,
            (Type::Array(array), _, Some(before)) => match &array.length {
                Length::Field(reference) if is_length(before, reference.path.last()) => {
                    Step::Sequence(fixed(&array.element)?)
                }
                _ => return None,
            },
            (Type::Variant(ty), _, Some(before)) => variant(before, ty)?,
            _ => return None,
        };
        match (steps.last_mut(), step) {
            (Some(Step::Fixed(sum)), Step::Fixed(size)) => *sum = sum.checked_add(size)?,
            (_, step) => steps.push(step),
        }
        before = Some(field);
    }
    Some(match steps[..] {
        [Step::Fixed(size)] => RecordSize::Fixed(WORD.checked_add(size)?),
        _ => RecordSize::Varying(steps.into()),
    })
}

/// A variant as the tracer writes it: the byte in front, `tag`, has the index of the option, which is of fixed size or a text.
fn variant(tag: &Field, ty: &VariantType) -> Option<Step> {
    if !matches!(&tag.ty, Type::Enum(integer, _) if integer.bits == 8)
        || ty.tag.path.last().is_none_or(|name| **name != *tag.raw_name)
    {
        return None;
    }
    let option = |(at, field): (usize, &Field)| {
        let is_chosen =
            |choice: &Choice| choice.option == at && choice.first == at as i128 && choice.last == at as i128;
        match &field.ty {
            _ if !ty.choices.iter().any(is_chosen) => None,
            Type::String => Some(Step::Text),
            Type::Struct(members) if members.fields.is_empty() => Some(Step::Fixed(0)),
            ty => fixed(ty).map(Step::Fixed),
        }
    };
    ty.options.iter().enumerate().map(option).collect::<Option<Box<[Step]>>>().map(Step::Variant)
}

/// Whether `field` is the four little-endian bytes called `name`.
fn is_length(field: &Field, name: Option<&String>) -> bool {
    let little = matches!(&field.ty, Type::Integer(ty) if ty.bits == 32 && ty.order == ByteOrder::Little);
    little && name.is_some_and(|name| **name == *field.raw_name)
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

    #[test]
    fn sizes_of_records_follow_from_their_fields() {
        let size = |steps: &[Step], record: &[u8]| size_of(&RecordSize::Varying(steps.into()), record);
        let text = [Step::Fixed(2), Step::Text, Step::Fixed(1)];
        assert_eq!(size(&text, b"IDtttttt22abc\x001"), Some(8 + 2 + 4 + 1));
        assert_eq!(size(&text, b"IDtttttt22abc"), None, "no NUL");
        let sequence = [Step::Fixed(4), Step::Sequence(2)];
        assert_eq!(size(&sequence, b"IDtttttt\x03\0\0\0aabbcc"), Some(8 + 4 + 6));
        assert_eq!(size(&sequence, b"IDtttttt\xff\xff\xff\xff"), Some(12 + 2 * 0xffff_ffff), "the caller refuses it");
        assert_eq!(size(&sequence, b"IDtttttt\x03\0"), None);
        let variant =
            [Step::Fixed(1), Step::Variant([Step::Fixed(0), Step::Fixed(4), Step::Text].into()), Step::Fixed(1)];
        assert_eq!(size(&variant, b"IDtttttt\x001"), Some(8 + 1 + 1));
        assert_eq!(size(&variant, b"IDtttttt\x0144441"), Some(8 + 1 + 4 + 1));
        assert_eq!(size(&variant, b"IDtttttt\x02abc\x001"), Some(8 + 1 + 4 + 1));
        assert_eq!(size(&variant, b"IDtttttt\x03"), None, "no such option");
        assert_eq!(size(&variant, b"IDtttttt"), None, "no tag");
    }
}
