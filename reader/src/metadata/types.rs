//! Field types as declared in the metadata.
//!
//! A type is a tree. Named types share subtrees, so a subtree may occur many times. Properties of a node (alignment, depth) are computed
//! once, when it is built.

use std::sync::Arc;

/// The options, other than `none`, of variants written by the tracer.
pub const TRACER_OPTIONS: [&str; 6] = ["some", "u64", "i64", "f64", "boolean", "text"];

/// Order of bytes, and of bits within a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first; bit fields fill a byte from its least significant bit.
    Little,
    /// Most significant byte first; bit fields fill a byte from its most significant bit.
    Big,
}

/// The preferred base for displaying an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Base {
    /// Base 2.
    Binary,
    /// Base 8.
    Octal,
    /// Base 10.
    #[default]
    Decimal,
    /// Base 16.
    Hexadecimal,
}

/// An integer of 1 to 64 bits.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own of the declaration")]
pub struct Integer {
    /// Size in bits, 1 to 64.
    pub bits: u8,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// True for a signed value (two's complement).
    pub signed: bool,
    /// The preferred base for display.
    pub base: Base,
    /// Its byte order.
    pub order: ByteOrder,
    /// True if it encodes a character: arrays of such integers are text.
    pub text: bool,
    /// True if the metadata calls its type `bool`: 0 is false, other values are true.
    pub truth: bool,
    /// True if the metadata calls its type `duration_ns`: a span of time in nanoseconds.
    pub duration: bool,
    /// The clock whose value it represents, as an index into [`Metadata::clocks`](crate::Metadata::clocks).
    pub clock: Option<u16>,
    pub(crate) slot: Option<Slot>,
}

/// An IEEE 754 number of 32 or 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Float {
    /// Size in bits: 32 or 64.
    pub bits: u8,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Its byte order.
    pub order: ByteOrder,
}

/// Where a decoder keeps an integer that determines the length of a later sequence or selects the option of a later variant.
///
/// Event slots are numbered per event class, shared slots per trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Shared(u32),
    Event(u32),
}

/// One label of an enumeration and its values.
///
/// The bounds are compared as signed or unsigned numbers, like the container, and kept as their 64-bit patterns.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The label.
    pub label: String,
    /// First value.
    pub first: i128,
    /// Last value, included.
    pub last: i128,
}

/// The labels of an enumeration, in the order of their declaration. Ranges may overlap.
#[derive(Debug)]
pub struct EnumType {
    /// The labels.
    pub mappings: Vec<Mapping>,
}

impl EnumType {
    /// All labels for `value`, in the order of their declaration.
    pub fn labels(&self, value: i128) -> impl Iterator<Item = &str> {
        self.mappings.iter().filter(move |m| (m.first..=m.last).contains(&value)).map(|m| m.label.as_str())
    }
}

/// A named member of a structure, or a named option of a variant.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name in the spelling of the metadata.
    pub raw_name: Arc<str>,
    /// The type.
    pub ty: Type,
}

impl Field {
    /// The displayed name: without one leading underscore, which writers add to avoid keywords.
    pub fn name(&self) -> &str {
        self.raw_name.strip_prefix('_').unwrap_or(&self.raw_name)
    }
}

/// A structure.
#[derive(Clone, Debug)]
pub struct StructType {
    /// Its members, in order.
    pub fields: Vec<Field>,
    /// Alignment in bits: the largest of its own and of its members' alignments.
    pub align: u32,
    pub(crate) depth: u32,
    pub(crate) dynamic: bool,
}

impl StructType {
    /// True if the member with this index is the length of the sequence after it, or the tag of a variant after it whose options
    /// are not shown. Such a member is redundant with the next one.
    pub fn is_length(&self, index: usize) -> bool {
        let reference = match self.fields.get(index + 1).map(|next| &next.ty) {
            Some(Type::Array(array)) => match &array.length {
                Length::Field(reference) => reference,
                Length::Fixed(_) => return false,
            },
            Some(Type::Variant(variant)) if variant.is_of_tracer() => &variant.tag,
            _ => return false,
        };
        reference.path.last().is_some_and(|name| **name == *self.fields[index].raw_name)
    }
}

/// The number of elements of an array.
#[derive(Clone, Debug)]
pub enum Length {
    /// A constant in the metadata.
    Fixed(u64),
    /// The value of an earlier integer.
    Field(Reference),
}

/// The path to an earlier integer, and its slot.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The path in the spelling of the metadata, one name per component.
    pub path: Arc<[String]>,
    pub(crate) slot: Option<Slot>,
}

/// An array or a sequence.
#[derive(Clone, Debug)]
pub struct ArrayType {
    /// Type of each element.
    pub element: Type,
    /// The number of elements.
    pub length: Length,
    pub(crate) depth: u32,
    pub(crate) dynamic: bool,
}

/// A variant: one of several options, selected by the label of an earlier enumeration.
#[derive(Clone, Debug)]
pub struct VariantType {
    /// The enumeration that selects the option; empty only while a variant is declared separately from its tag.
    pub tag: Reference,
    /// The values of the tag that select each option; empty before the path is resolved.
    pub(crate) choices: Arc<[Choice]>,
    /// The options.
    pub options: Vec<Field>,
    pub(crate) depth: u32,
}

impl VariantType {
    /// True if the tracer wrote it for an optional value, or for a value of any type: only the value in it is relevant.
    pub(crate) fn is_of_tracer(&self) -> bool {
        self.options.iter().all(|option| option.name() == "none" || TRACER_OPTIONS.contains(&option.name()))
    }
}

/// Values of a tag, and the index of the option they select.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) first: i128,
    pub(crate) last: i128,
    pub(crate) option: usize,
}

/// A field type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Type {
    /// An integer.
    Integer(Integer),
    /// A floating-point number.
    Float(Float),
    /// Bytes that end with a NUL.
    String,
    /// An integer with labels.
    Enum(Integer, Arc<EnumType>),
    /// A structure.
    Struct(Arc<StructType>),
    /// An array or a sequence.
    Array(Arc<ArrayType>),
    /// A variant.
    Variant(Arc<VariantType>),
}

impl Type {
    /// Alignment in bits.
    pub fn align(&self) -> u32 {
        match self {
            Self::Integer(integer) | Self::Enum(integer, _) => integer.align,
            Self::Float(float) => float.align,
            Self::String => 8,
            Self::Struct(ty) => ty.align,
            Self::Array(ty) => ty.element.align(),
            // The selected option has its own alignment.
            Self::Variant(_) => 1,
        }
    }

    pub(crate) fn depth(&self) -> u32 {
        match self {
            Self::Struct(ty) => ty.depth,
            Self::Array(ty) => ty.depth,
            Self::Variant(ty) => ty.depth,
            _ => 1,
        }
    }

    /// True if it contains a sequence or a variant, whose path has to be resolved.
    pub(crate) fn is_dynamic(&self) -> bool {
        match self {
            Self::Struct(ty) => ty.dynamic,
            Self::Array(ty) => ty.dynamic,
            Self::Variant(_) => true,
            _ => false,
        }
    }

    /// True for an optional or plain span of time in nanoseconds.
    pub fn is_duration(&self) -> bool {
        match self {
            Self::Integer(integer) => integer.duration,
            Self::Variant(variant) => match &variant.options[..] {
                [none, some] => none.name() == "none" && matches!(&some.ty, Self::Integer(value) if value.duration),
                _ => false,
            },
            _ => false,
        }
    }

    /// The integer, if it is a byte that is neither a character nor a time nor a boolean: arrays of these are kept as bytes.
    pub fn is_plain_byte(&self) -> Option<Integer> {
        match self {
            Self::Integer(i) if i.bits == 8 && i.align == 8 && !i.signed && !i.truth && i.clock.is_none() => Some(*i),
            _ => None,
        }
    }

    /// True for a whole byte that encodes a character.
    pub fn is_character(&self) -> bool {
        matches!(self, Self::Integer(i) if i.text && i.bits == 8 && i.align % 8 == 0)
    }
}
