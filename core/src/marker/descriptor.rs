//! The static description of a marker, readable before its first event.

use crate::getters::getters;
use crate::location::Location;
use tracepoint_ring::Level;
use tracepoint_ring::field::{FieldDescriptor, Fields, Value, Writer};

/// The static description of a marker. Later versions only append to it; readers recognise a version by `size`.
#[derive(Debug)]
#[repr(C)]
#[non_exhaustive]
pub struct MarkerDescriptor {
    /// The size of this structure in bytes.
    pub size: u32,
    /// The version of this structure: 1.
    pub version: u32,
    /// Computes the size of an encoded event from its values.
    pub(super) encoded_size: unsafe fn(values: *const ()) -> usize,
    /// Encodes an event from its values.
    pub(super) encode: unsafe fn(values: *const (), writer: &mut Writer),
    /// Returns one field of an event from its values.
    pub(super) field: unsafe fn(values: *const (), index: usize) -> Option<Value<'static>>,
    /// The declared properties.
    pub(super) parts: MarkerParts,
}

/// The declared properties of a marker.
#[derive(Clone, Copy, Debug)]
pub struct MarkerParts {
    /// The part of the event's name before the colon.
    pub provider: &'static str,
    /// The part of the event's name after the colon.
    pub name: &'static str,
    /// The importance of the event.
    pub level: Level,
    /// The fields, in the order of the record.
    pub fields: &'static [FieldDescriptor],
    /// The format string: field names and conversions.
    pub format: &'static str,
    /// The doc comment; empty if there is none.
    pub doc: &'static str,
    /// Where it was declared.
    pub location: Location,
}

/// The type of the evaluated fields of one event, generic over their lifetime. Implemented by the macros.
pub trait ValuesType: 'static {
    /// The values.
    #[doc(hidden)]
    type Values<'a>: Fields;
}

getters! { MarkerDescriptor, &self => self.parts;
    /// The part of the event's name before the colon.
    provider: &'static str,
    /// The part of the event's name after the colon.
    name: &'static str,
    /// The fields, in the order of the record.
    fields: &'static [FieldDescriptor],
}

impl MarkerDescriptor {
    pub(super) const fn new<M: ValuesType>(parts: MarkerParts) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            version: 1,
            parts,
            encoded_size: encoded_size::<M>,
            encode: encode::<M>,
            field: field::<M>,
        }
    }

    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider(), self.name())
    }
}

/// # Safety
///
/// `values` points to a live `M::Values`.
unsafe fn encoded_size<M: ValuesType>(values: *const ()) -> usize {
    // SAFETY: the caller passes a pointer to M's values.
    unsafe { &*values.cast::<M::Values<'_>>() }.encoded_size()
}

/// # Safety
///
/// `values` points to a live `M::Values`, and `writer` has room for `encoded_size` bytes.
unsafe fn encode<M: ValuesType>(values: *const (), writer: &mut Writer) {
    // SAFETY: the caller passes a pointer to M's values, and a writer with room for them.
    unsafe { (*values.cast::<M::Values<'_>>()).encode(writer) }
}

/// # Safety
///
/// `values` points to an `M::Values` that is live for as long as the result is used.
unsafe fn field<M: ValuesType>(values: *const (), index: usize) -> Option<Value<'static>> {
    // SAFETY: the caller passes a pointer to M's values, and keeps the result no longer than them.
    unsafe { &*values.cast::<M::Values<'_>>() }.field(index)
}
