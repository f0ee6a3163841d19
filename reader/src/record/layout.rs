//! The positions of the members of a record, from which its size and single members are found without decoding the others.
//!
//! This works for records written by the tracer: a header word, then the members of the contexts and the fields, byte-aligned. A
//! member is found directly if all members before it have a fixed size, and otherwise by skipping the variable-size members before it.

use crate::metadata::types::TRACER_OPTIONS;
use crate::metadata::types::{
    ByteOrder, Choice, Field, Float, Integer, Length, Reference, StructType, Type, VariantType,
};
use crate::metadata::{DerivedData, EventClass, StreamClass};
use std::any::Any;
use std::sync::Arc;
use tracepoint_ring::field::Value;

/// The size of a record's header word: 16 bits of id, 48 bits of time.
pub(crate) const WORD: usize = 8;
/// Number of bits of the time in the header word.
pub(crate) const TIME_BITS: u8 = 48;
/// Maximum size of a record; larger ones are decoded by the general decoder, which limits the memory of an event.
pub(crate) const MAX_RECORD: usize = 1 << 20;
/// Maximum number of members; records with more are decoded by the general decoder.
const MAX_MEMBERS: usize = 1000;
/// Maximum number of variable-size members for decoding one by one, because each member is located from the beginning of the record.
const MAX_VARYING: usize = 8;

/// The layout of the records of one event.
#[derive(Clone, Debug)]
pub(crate) struct RecordLayout {
    /// Each variable-size member, and the number of fixed-size bytes before it.
    varying: Box<[(usize, VariableSize)]>,
    /// Number of bytes after the last variable-size member, or after the header word.
    tail: usize,
    /// The members of the fields, of the event's context, and of its stream's context.
    members: Box<[Member]>,
}

#[derive(Clone, Debug)]
enum VariableSize {
    Fixed(usize),
    /// Bytes up to and including a NUL.
    Text,
    /// Elements of this size; the four bytes before them hold their number.
    Sequence(usize),
    /// One of these, selected by the index in the byte before.
    Variant(Box<[Self]>),
}

impl VariableSize {
    /// The offset after a member that begins at `at`.
    #[inline]
    fn behind(&self, record: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::Fixed(size) => at.checked_add(*size),
            Self::Text => Some(at + record.get(at..)?.iter().position(|byte| *byte == 0)? + 1),
            Self::Sequence(element) => at.checked_add(length_before(record, at)?.checked_mul(*element)?),
            // An option is not itself a variant: the recursion depth is 1.
            Self::Variant(options) => options.get(tag_before(record, at)?)?.behind(record, at),
        }
    }
}

/// A member: its position after a number of variable-size members and a number of further bytes.
#[derive(Clone, Debug)]
struct Member {
    behind: usize,
    offset: usize,
    kind: Kind,
}

/// The representation of a member's bytes.
#[derive(Clone, Debug)]
enum Kind {
    Integer(Integer),
    Float(Float),
    Text,
    /// A fixed number of bytes; without a number, the four bytes before hold it. `text`: a NUL ends it.
    Bytes {
        length: Option<usize>,
        text: bool,
    },
    /// Without a value.
    Absent,
    /// The option whose index is in the byte before.
    Variant(Box<[Self]>),
    Other,
}

impl RecordLayout {
    /// The layout of records with these fields and these contexts of the event and of its stream; `None` if it is not a layout of the tracer.
    pub(crate) fn of(
        fields: Option<&StructType>,
        context: Option<&StructType>,
        stream: Option<&StructType>,
    ) -> Option<Self> {
        let mut layout = Builder::default();
        // In the record, contexts come first.
        let stream = layout.part(stream)?;
        let context = layout.part(context)?;
        let members: Box<[_]> = [layout.part(fields)?, context, stream].concat().into();
        layout.tail.checked_add(WORD)?;
        (members.len() <= MAX_MEMBERS).then(|| Self { varying: layout.varying.into(), tail: layout.tail, members })
    }

    /// The size of the record at the start of these bytes, which may exceed the bytes; `None` if they are too short to determine it.
    #[inline]
    pub(crate) fn size(&self, record: &[u8]) -> Option<usize> {
        if self.varying.is_empty() {
            return Some(WORD + self.tail);
        }
        self.behind(record, self.varying.len())?.checked_add(self.tail)
    }

    /// The offset after the first `count` variable-size members.
    #[inline]
    fn behind(&self, record: &[u8], count: usize) -> Option<usize> {
        self.varying[..count]
            .iter()
            .try_fold(WORD, |at, (fixed, varying)| varying.behind(record, at.checked_add(*fixed)?))
    }

    /// The number of members.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The value of the member with this number in a complete record; `None` for arrays that are not bytes.
    #[inline]
    pub(crate) fn value<'a>(&self, record: &'a [u8], index: usize) -> Option<Value<'a>> {
        self.members.get(index)?.kind.value(record, self.place(record, index)?)
    }

    /// The offset of the member with this number in a complete record.
    #[inline]
    pub(crate) fn place(&self, record: &[u8], index: usize) -> Option<usize> {
        let member = self.members.get(index)?;
        Some(self.behind(record, member.behind)? + member.offset)
    }
}

impl Kind {
    /// True for a number, a text or bytes.
    fn is_plain(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Float(_) | Self::Text | Self::Bytes { .. })
    }

    /// True if [`Kind::value`] returns the value and its type, which excludes arrays and members of several types.
    fn is_scalar(&self) -> bool {
        match self {
            Self::Other => false,
            Self::Variant(options) => {
                let mut values = options.iter().filter(|option| !matches!(option, Self::Absent));
                values.next().is_none_or(Self::is_scalar) && values.next().is_none()
            }
            _ => true,
        }
    }

    /// The value of a member that begins at `at`.
    #[inline]
    fn value<'a>(&self, record: &'a [u8], at: usize) -> Option<Value<'a>> {
        let rest = record.get(at..)?;
        Some(match self {
            Self::Integer(ty) => {
                let raw = number(rest, ty.bits, ty.order)?;
                let unused = 64 - u32::from(ty.bits);
                if ty.truth {
                    return Some(Value::Bool(raw != 0));
                }
                if ty.signed { Value::Signed((raw << unused).cast_signed() >> unused) } else { Value::Unsigned(raw) }
            }
            Self::Float(ty) => {
                let raw = number(rest, ty.bits, ty.order)?;
                Value::Float(if ty.bits == 32 { f32::from_bits(raw as u32).into() } else { f64::from_bits(raw) })
            }
            Self::Text => Value::Path(until_nul(rest)),
            Self::Bytes { length, text } => {
                let bytes = rest.get(..length.or_else(|| length_before(record, at))?)?;
                Value::Path(if *text { until_nul(bytes) } else { bytes })
            }
            Self::Absent => Value::Absent,
            Self::Variant(options) => return options.get(tag_before(record, at)?)?.value(record, at),
            Self::Other => return None,
        })
    }
}

/// The byte before `at`.
#[inline]
fn tag_before(record: &[u8], at: usize) -> Option<usize> {
    record.get(at - 1).map(|tag| usize::from(*tag))
}

/// The number in the four bytes before `at`.
#[inline]
pub(crate) fn length_before(record: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*record.get(at - 4..)?.first_chunk()?) as usize)
}

/// The first bytes as a number of `bits` bits.
#[inline]
pub(crate) fn number(bytes: &[u8], bits: u8, order: ByteOrder) -> Option<u64> {
    let size = usize::from(bits / 8);
    if let (ByteOrder::Little, Some(word)) = (order, bytes.first_chunk()) {
        return Some(u64::from_le_bytes(*word) & (u64::MAX >> (64 - u32::from(bits))));
    }
    let (bytes, mut word) = (bytes.get(..size)?, [0; 8]);
    Some(match order {
        ByteOrder::Little => {
            word[..size].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
        ByteOrder::Big => {
            word[8 - size..].copy_from_slice(bytes);
            u64::from_be_bytes(word)
        }
    })
}

#[inline]
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())]
}

#[derive(Default)]
struct Builder {
    varying: Vec<(usize, VariableSize)>,
    tail: usize,
}

impl Builder {
    /// Appends the members of a structure.
    fn part(&mut self, part: Option<&StructType>) -> Option<Vec<Member>> {
        let Some(part) = part else { return Some(Vec::new()) };
        let mut members = Vec::new();
        let mut before: Option<&Field> = None;
        if part.align > 8 || part.fields.iter().any(|field| has_clock(&field.ty)) {
            return None;
        }
        for field in &part.fields {
            let member = Member { behind: self.varying.len(), offset: self.tail, kind: kind(&field.ty) };
            match (&field.ty, fixed(&field.ty), before) {
                (_, Some(size), _) => self.tail = self.tail.checked_add(size)?,
                (Type::String, ..) => self.varying.push((std::mem::take(&mut self.tail), VariableSize::Text)),
                (Type::Array(array), _, Some(before)) => match &array.length {
                    Length::Field(reference) if is_length(before, reference) => {
                        let elements = VariableSize::Sequence(fixed(&array.element).filter(|size| *size > 0)?);
                        self.varying.push((std::mem::take(&mut self.tail), elements));
                    }
                    _ => return None,
                },
                (Type::Variant(ty), _, Some(before)) => {
                    self.varying.push((std::mem::take(&mut self.tail), variant(before, ty)?));
                }
                _ => return None,
            }
            members.push(member);
            before = Some(field);
        }
        Some(members)
    }
}

fn kind(ty: &Type) -> Kind {
    match ty {
        Type::Integer(ty) => Kind::Integer(*ty),
        Type::Enum(ty, _) => Kind::Integer(Integer { truth: false, ..*ty }),
        Type::Float(ty) => Kind::Float(*ty),
        Type::String => Kind::Text,
        Type::Array(ty) if ty.element.is_character() || ty.element.is_plain_byte().is_some() => Kind::Bytes {
            length: match ty.length {
                Length::Fixed(count) => usize::try_from(count).ok(),
                Length::Field(_) => None,
            },
            text: ty.element.is_character(),
        },
        Type::Variant(ty) => Kind::Variant(ty.options.iter().map(option_kind).collect()),
        _ => Kind::Other,
    }
}

/// The kind of an option; of an option that the tracer writes, the kind of the value in it.
fn option_kind(option: &Field) -> Kind {
    match option.name() {
        "none" => Kind::Absent,
        name if TRACER_OPTIONS.contains(&name) => kind(&option.ty),
        _ => Kind::Other,
    }
}

/// A variant in the tracer's form: the byte before it, `tag`, has the index of the option, which has a fixed size or is a text.
fn variant(tag: &Field, ty: &VariantType) -> Option<VariableSize> {
    if !matches!(&tag.ty, Type::Enum(integer, _) if integer.bits == 8 && integer.slot.is_some() && integer.slot == ty.tag.slot)
        || ty.choices.len() != ty.options.len()
    {
        return None;
    }
    let option = |(at, field): (usize, &Field)| {
        let is_chosen =
            |choice: &Choice| choice.option == at && choice.first == at as i128 && choice.last == at as i128;
        match &field.ty {
            ty if ty.align() > 8 || has_clock(ty) => None,
            _ if !ty.choices.iter().any(is_chosen) => None,
            Type::String => Some(VariableSize::Text),
            Type::Struct(members) if members.fields.is_empty() => Some(VariableSize::Fixed(0)),
            ty => fixed(ty).map(VariableSize::Fixed),
        }
    };
    ty.options.iter().enumerate().map(option).collect::<Option<Box<[VariableSize]>>>().map(VariableSize::Variant)
}

fn has_clock(ty: &Type) -> bool {
    match ty {
        Type::Integer(ty) | Type::Enum(ty, _) => ty.clock.is_some(),
        Type::Array(ty) => has_clock(&ty.element),
        _ => false,
    }
}

/// The size in bytes of a fixed-size type; `None` for others, and for sizes that are not whole bytes.
pub(crate) fn fixed(ty: &Type) -> Option<usize> {
    let bits = match ty {
        Type::Integer(integer) | Type::Enum(integer, _) => usize::from(integer.bits),
        Type::Float(float) => usize::from(float.bits),
        Type::Array(array) => match array.length {
            Length::Fixed(count) => {
                let element = fixed(&array.element).filter(|size| *size > 0)?;
                element.checked_mul(usize::try_from(count).ok()?)?.checked_mul(8)?
            }
            Length::Field(_) => return None,
        },
        _ => return None,
    };
    (bits % 8 == 0).then_some(bits / 8)
}

/// True if `field` is the four little-endian bytes that `reference` refers to.
fn is_length(field: &Field, reference: &Reference) -> bool {
    let Type::Integer(ty) = &field.ty else { return false };
    let is_word = ty.bits == 32 && ty.order == ByteOrder::Little && !ty.signed;
    is_word && reference.slot.is_some() && reference.slot == ty.slot
}

impl DerivedData for ClassLayouts {}

/// The layouts of the records of a stream class, by the ids of their events.
#[derive(Clone, Debug)]
pub(crate) struct ClassLayouts {
    events: Vec<Option<(Arc<EventClass>, RecordLayout)>>,
}

impl ClassLayouts {
    /// The layouts of all events with a known layout; none if the record header is not the tracer's.
    pub(crate) fn of(class: &StreamClass) -> Self {
        Self::of_which(class, |_, _| true)
    }

    /// The same for events whose values can all be read without decoding the others.
    pub(crate) fn of_scalars(class: &StreamClass) -> Self {
        Self::of_wanted(class, |_| true)
    }

    /// The same, plus the events that are not wanted, by their ids, because their values are never read.
    pub(crate) fn of_wanted(class: &StreamClass, is_wanted: impl Fn(u64) -> bool) -> Self {
        let has_scalars = |layout: &RecordLayout| layout.members.iter().all(|member| member.kind.is_scalar());
        Self::of_which(class, |id, layout| !is_wanted(id) || has_scalars(layout))
    }

    /// The same for events whose values are all numbers, texts and bytes; computed once for all streams of the class.
    pub(crate) fn plain(class: &StreamClass) -> Option<&Self> {
        let is_plain = |layout: &RecordLayout| layout.members.iter().all(|member| member.kind.is_plain());
        let is_known = |_, layout: &RecordLayout| layout.varying.len() <= MAX_VARYING && is_plain(layout);
        let derived = class.derived.get_or_init(|| Arc::new(Self::of_which(class, is_known)));
        let derived: &dyn Any = &**derived;
        derived.downcast_ref()
    }

    fn of_which(class: &StreamClass, is_known: impl Fn(u64, &RecordLayout) -> bool) -> Self {
        let mut events = Vec::new();
        if class.event_header.as_ref().is_some_and(|header| is_word(header)) {
            for (id, event) in &class.events {
                let Ok(id) = u16::try_from(*id) else { continue };
                events.resize_with(events.len().max(usize::from(id) + 1), || None);
                let [fields, context, stream] =
                    [&event.fields, &event.context, &class.event_context].map(Option::as_deref);
                let layout = RecordLayout::of(fields, context, stream).filter(|layout| is_known(id.into(), layout));
                events[usize::from(id)] = layout.map(|layout| (Arc::clone(event), layout));
            }
        }
        Self { events }
    }

    /// The event with this id.
    #[inline]
    pub(crate) fn get(&self, id: u16) -> Option<&(Arc<EventClass>, RecordLayout)> {
        self.events.get(usize::from(id))?.as_ref()
    }
}

/// The layouts of the stream classes that a reader has seen, by their addresses.
pub(crate) struct KnownLayouts {
    make: fn(&StreamClass) -> ClassLayouts,
    known: Vec<(Arc<StreamClass>, ClassLayouts)>,
}

impl KnownLayouts {
    pub(crate) const fn new(make: fn(&StreamClass) -> ClassLayouts) -> Self {
        Self { make, known: Vec::new() }
    }

    pub(crate) fn of(&mut self, class: &Arc<StreamClass>) -> &ClassLayouts {
        let index = self.known.iter().position(|(known, _)| Arc::ptr_eq(known, class)).unwrap_or_else(|| {
            self.known.push((Arc::clone(class), (self.make)(class)));
            self.known.len() - 1
        });
        &self.known[index].1
    }
}

/// True if the header is a word with a 16-bit id and a 48-bit time.
fn is_word(header: &StructType) -> bool {
    let is_part = |field: &Field, bits: u8| match &field.ty {
        Type::Integer(ty) => ty.bits == bits && !ty.signed && ty.order == ByteOrder::Little,
        _ => false,
    };
    let has_clock = |index: usize| has_clock(&header.fields[index].ty);
    matches!(&header.fields[..], [id, time]
        if header.align <= 8 && is_part(id, 16) && is_part(time, TIME_BITS) && id.name() == "id" && time.name() != "id")
        && !has_clock(0)
        && has_clock(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(varying: &[(usize, VariableSize)], tail: usize, record: &[u8]) -> Option<usize> {
        RecordLayout { varying: varying.into(), tail, members: Box::default() }.size(record)
    }

    #[test]
    fn sizes_of_records_follow_from_their_fields() {
        let text = [(2, VariableSize::Text)];
        assert_eq!(size(&text, 1, b"IDtttttt22abc\x001"), Some(8 + 2 + 4 + 1));
        assert_eq!(size(&text, 1, b"IDtttttt22abc"), None, "no NUL");
        let sequence = [(4, VariableSize::Sequence(2))];
        assert_eq!(size(&sequence, 0, b"IDtttttt\x03\0\0\0aabbcc"), Some(8 + 4 + 6));
        assert_eq!(
            size(&sequence, 0, b"IDtttttt\xff\xff\xff\xff"),
            Some(12 + 2 * 0xffff_ffff),
            "the caller refuses it"
        );
        assert_eq!(size(&sequence, 0, b"IDtttttt\x03\0"), None);
        let variant =
            [(1, VariableSize::Variant([VariableSize::Fixed(0), VariableSize::Fixed(4), VariableSize::Text].into()))];
        assert_eq!(size(&variant, 1, b"IDtttttt\x001"), Some(8 + 1 + 1));
        assert_eq!(size(&variant, 1, b"IDtttttt\x0144441"), Some(8 + 1 + 4 + 1));
        assert_eq!(size(&variant, 1, b"IDtttttt\x02abc\x001"), Some(8 + 1 + 4 + 1));
        assert_eq!(size(&variant, 1, b"IDtttttt\x03"), None, "no such option");
        assert_eq!(size(&variant, 1, b"IDtttttt"), None, "no tag");
    }
}
