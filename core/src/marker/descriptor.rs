//! What is known of a marker before it fires.

use super::subscriber::SubscriberList;
use crate::key::Key;
use crate::level::Level;
use crate::location::Location;
use crate::tracepoint::Tracepoint;
use std::marker::PhantomData;
use std::ptr::null_mut;
use tracepoint_ring::channel::SoleSubscriber;
use tracepoint_ring::field::sealed::Sealed;
use tracepoint_ring::field::{FieldDescriptor, Fields, NulHandling, Value, Writer};
use tracepoint_ring::primitive::AtomicPtr;
use tracepoint_ring::rcu_pointer::RcuPointer;

/// The static description of a marker. Grows at its end only; `size` tells an older reader from a newer one.
#[derive(Debug)]
#[repr(C)]
#[non_exhaustive]
pub struct MarkerDescriptor {
    /// The size of this structure in bytes.
    pub size: u32,
    /// The version of this structure: 1.
    pub version: u32,
    /// The size of an encoded event, from its values.
    encoded_size: unsafe fn(values: *const ()) -> usize,
    /// Writes an event, from its values.
    encode: unsafe fn(values: *const (), writer: &mut Writer),
    /// One field of an event, from its values.
    field: unsafe fn(values: *const (), index: usize) -> Option<Value<'static>>,
    /// What was declared.
    pub parts: MarkerParts,
}

/// What a declaration says of a marker.
#[derive(Clone, Copy, Debug)]
pub struct MarkerParts {
    /// The part of the event's name before the colon.
    pub provider: &'static str,
    /// The part of the event's name after the colon.
    pub name: &'static str,
    /// How important the event is.
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

/// A marker: its description, its key and who subscribed to it. One static per declaration.
#[derive(Debug)]
pub struct Marker {
    descriptor: MarkerDescriptor,
    pub(crate) key: &'static Key,
    /// The tracepoint whose fields these are. A hand-written marker has none: its site asks `key`.
    pub(crate) tracepoint: Option<&'static Tracepoint>,
    pub(crate) subscribers: RcuPointer<SubscriberList>,
    /// The subscriber that the fast path records for, in the list of `subscribers`; null where events take the full path.
    pub(super) sole: AtomicPtr<SoleSubscriber>,
}

impl Marker {
    /// Built by the macros only.
    #[doc(hidden)]
    pub const fn new<M: MarkerType>(
        parts: MarkerParts,
        key: &'static Key,
        tracepoint: Option<&'static Tracepoint>,
    ) -> Self {
        Self {
            descriptor: MarkerDescriptor {
                size: size_of::<MarkerDescriptor>() as u32,
                version: 1,
                parts,
                encoded_size: encoded_size::<M>,
                encode: encode::<M>,
                field: field::<M>,
            },
            key,
            tracepoint,
            subscribers: RcuPointer::null(),
            sole: AtomicPtr::new(null_mut()),
        }
    }

    /// The description.
    pub const fn descriptor(&self) -> &MarkerDescriptor {
        &self.descriptor
    }

    /// The part of the name before the colon.
    pub const fn provider(&self) -> &'static str {
        self.descriptor.parts.provider
    }

    /// The part of the name after the colon.
    pub const fn name(&self) -> &'static str {
        self.descriptor.parts.name
    }

    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider(), self.name())
    }

    /// How important the event is.
    pub const fn level(&self) -> Level {
        self.descriptor.parts.level
    }

    /// The fields, in the order of the record.
    pub const fn fields(&self) -> &'static [FieldDescriptor] {
        self.descriptor.parts.fields
    }

    /// The format string: `"prev_pid %d next_pid %d"`.
    pub const fn format(&self) -> &'static str {
        self.descriptor.parts.format
    }

    /// The doc comment above the declaration; empty if there is none.
    pub const fn doc(&self) -> &'static str {
        self.descriptor.parts.doc
    }

    /// Where it was declared.
    pub const fn location(&self) -> Location {
        self.descriptor.parts.location
    }

    /// The tracepoint whose field block this is; `None` for a `trace_mark!`.
    pub const fn tracepoint(&self) -> Option<&'static Tracepoint> {
        self.tracepoint
    }

    /// Whether anybody subscribed.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.key.is_on()
    }
}

/// A marker as a type: what its values are. Implemented by the macros.
pub trait MarkerType: 'static {
    /// The evaluated fields of one event.
    #[doc(hidden)]
    type Values<'a>: Fields;
    /// The static of the marker.
    #[doc(hidden)]
    fn marker() -> &'static Marker;
}

/// # Safety
///
/// `values` points to a live `M::Values`.
unsafe fn encoded_size<M: MarkerType>(values: *const ()) -> usize {
    // SAFETY: the caller passes a pointer to M's values.
    unsafe { &*values.cast::<M::Values<'_>>() }.encoded_size()
}

/// # Safety
///
/// `values` points to a live `M::Values`, and `writer` has room for `encoded_size` bytes.
unsafe fn encode<M: MarkerType>(values: *const (), writer: &mut Writer) {
    // SAFETY: the caller passes a pointer to M's values and the room that they need.
    unsafe { (*values.cast::<M::Values<'_>>()).encode(writer) }
}

/// # Safety
///
/// `values` points to an `M::Values` that is live for as long as the result is used.
unsafe fn field<M: MarkerType>(values: *const (), index: usize) -> Option<Value<'static>> {
    // SAFETY: the caller passes a pointer to M's values, and keeps the result no longer than them.
    unsafe { &*values.cast::<M::Values<'_>>() }.field(index)
}

/// The values of one event, as filters and aggregates see them: by index, of any type.
#[derive(Clone, Copy, Debug)]
pub struct FieldView<'a> {
    marker: &'static Marker,
    values: *const (),
    alive: PhantomData<&'a ()>,
}

impl<'a> FieldView<'a> {
    #[inline(always)]
    pub(crate) fn new<M: MarkerType>(values: &'a M::Values<'_>) -> Self {
        Self { marker: M::marker(), values: std::ptr::from_ref(values).cast(), alive: PhantomData }
    }

    /// The marker that fired.
    pub const fn marker(&self) -> &'static Marker {
        self.marker
    }

    /// The value of the field at `index`, or `None` past the last.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        // SAFETY: `values` points to values of this very marker (`new`), alive for 'a.
        unsafe { (self.marker.descriptor.field)(self.values, index) }
    }

    /// The value of the field called `name`.
    pub fn by_name(&self, name: &str) -> Option<Value<'a>> {
        self.marker.fields().iter().position(|field| field.name == name).and_then(|index| self.get(index))
    }

    /// Appends to `out` the bytes of the fields as they stand in a record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let size = self.encoded_size();
        out.reserve(size);
        // SAFETY: `reserve` made room for `size` bytes past the end, and `encode` writes exactly so many.
        unsafe {
            let mut writer = Writer::new(out.as_mut_ptr().add(out.len()), NulHandling::Replace);
            self.encode_into(&mut writer);
            out.set_len(out.len() + size);
        }
    }

    /// How many bytes the fields take in a record.
    fn encoded_size(&self) -> usize {
        // SAFETY: `values` points to values of this marker, alive for 'a.
        unsafe { (self.marker.descriptor.encoded_size)(self.values) }
    }

    /// Writes the fields as they stand in a record.
    ///
    /// # Safety
    ///
    /// `writer` has room for `encoded_size` bytes.
    unsafe fn encode_into(&self, writer: &mut Writer) {
        // SAFETY: `values` points to values of this marker, alive for 'a; the caller gives the room.
        unsafe { (self.marker.descriptor.encode)(self.values, writer) }
    }
}

impl Sealed for FieldView<'_> {}

/// So that one copy of the code that writes records serves all markers.
impl Fields for FieldView<'_> {
    const COUNT: usize = 0;
    // Of any marker.
    const MAY_SATURATE: bool = true;

    fn encoded_size(&self) -> usize {
        Self::encoded_size(self)
    }

    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: as the caller's.
        unsafe { self.encode_into(writer) }
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        self.get(index)
    }
}
