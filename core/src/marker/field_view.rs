//! A type-erased view of the values of one event.

use super::descriptor::{MarkerDescriptor, ValuesType};
use std::marker::PhantomData;
use tracepoint_ring::field::sealed::Sealed;
use tracepoint_ring::field::{Fields, NulHandling, Value, Writer};

/// The values of one event of any marker, accessed by index or by name. Filters and aggregates receive it.
#[derive(Clone, Copy, Debug)]
pub struct FieldView<'a> {
    descriptor: &'static MarkerDescriptor,
    values: *const (),
    alive: PhantomData<&'a ()>,
}

impl<'a> FieldView<'a> {
    /// # Safety
    ///
    /// `descriptor` was made for `M`.
    #[inline(always)]
    pub(super) unsafe fn new<M: ValuesType>(descriptor: &'static MarkerDescriptor, values: &'a M::Values<'_>) -> Self {
        Self { descriptor, values: std::ptr::from_ref(values).cast(), alive: PhantomData }
    }

    /// The description of the marker that fired.
    pub const fn descriptor(&self) -> &'static MarkerDescriptor {
        self.descriptor
    }

    /// The value of the field at `index`; `None` if there is no such field.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        // SAFETY: `values` points to values of this marker (the contract of `new`), alive for 'a.
        unsafe { (self.descriptor.field)(self.values, index) }
    }

    /// The value of the field called `name`.
    pub fn by_name(&self, name: &str) -> Option<Value<'a>> {
        self.descriptor.fields().iter().position(|field| field.name == name).and_then(|index| self.get(index))
    }

    /// Appends the fields to `out`, encoded as in a record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let size = self.encoded_size();
        out.reserve(size);
        // SAFETY: `reserve` made room for `size` bytes past the end, and `encode_into` writes exactly `size` bytes.
        unsafe {
            let mut writer = Writer::new(out.as_mut_ptr().add(out.len()), NulHandling::Replace);
            self.encode_into(&mut writer);
            out.set_len(out.len() + size);
        }
    }

    /// The size of the encoded fields in bytes.
    fn encoded_size(&self) -> usize {
        // SAFETY: `values` points to values of this marker, alive for 'a.
        unsafe { (self.descriptor.encoded_size)(self.values) }
    }

    /// Writes the fields, encoded as in a record.
    ///
    /// # Safety
    ///
    /// `writer` has room for `encoded_size` bytes.
    unsafe fn encode_into(&self, writer: &mut Writer) {
        // SAFETY: `values` points to values of this marker, alive for 'a; the caller guarantees the room.
        unsafe { (self.descriptor.encode)(self.values, writer) }
    }
}

impl Sealed for FieldView<'_> {}

/// Lets one copy of the code that writes records serve all markers.
impl Fields for FieldView<'_> {
    const COUNT: usize = 0;
    // A view may belong to any marker.
    const MAY_SATURATE: bool = true;

    fn encoded_size(&self) -> usize {
        Self::encoded_size(self)
    }

    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller's promise is that of `encode_into`.
        unsafe { self.encode_into(writer) }
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        self.get(index)
    }
}
