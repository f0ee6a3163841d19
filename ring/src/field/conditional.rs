//! Fields that an event has only under a condition that is known at compile time.

use super::sealed::Sealed;
use super::types::FieldDescriptor;
use super::value::{FieldValue, Fields, Value, Writer};

/// A list of the one field `V`, or of none.
#[derive(Clone, Copy, Debug)]
pub struct Conditional<V, const IS_THERE: bool>(pub V);

impl<V: FieldValue, const IS_THERE: bool> Sealed for Conditional<V, IS_THERE> {}

impl<V: FieldValue, const IS_THERE: bool> Fields for Conditional<V, IS_THERE> {
    const COUNT: usize = IS_THERE as usize;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        if IS_THERE { self.0.encoded_size() } else { 0 }
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        if IS_THERE {
            // SAFETY: the caller guarantees room for the field.
            unsafe { self.0.encode(writer) };
        }
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        (IS_THERE && index == 0).then(|| self.0.value())
    }
}

/// Number of fields that are present.
pub const fn count(fields: &[(bool, FieldDescriptor)]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < fields.len() {
        count += fields[at].0 as usize;
        at += 1;
    }
    count
}

/// The `N` fields that are present, at least one.
pub const fn present<const N: usize>(fields: &[(bool, FieldDescriptor)]) -> [FieldDescriptor; N] {
    let mut present = [fields[0].1; N];
    let (mut count, mut at) = (0, 0);
    while at < fields.len() {
        if fields[at].0 {
            present[count] = fields[at].1;
            count += 1;
        }
        at += 1;
    }
    present
}

/// Length of the text that [`joined`] produces.
pub const fn joined_length(parts: &[(bool, &str)]) -> usize {
    let (mut length, mut at) = (0, 0);
    while at < parts.len() {
        if parts[at].0 {
            length += parts[at].1.len();
        }
        at += 1;
    }
    length
}

/// The bytes of the texts that are present, concatenated.
pub const fn joined<const N: usize>(parts: &[(bool, &str)]) -> [u8; N] {
    let mut bytes = [0; N];
    let (mut length, mut at) = (0, 0);
    while at < parts.len() {
        let part = parts[at].1.as_bytes();
        let mut byte = 0;
        while parts[at].0 && byte < part.len() {
            bytes[length] = part[byte];
            length += 1;
            byte += 1;
        }
        at += 1;
    }
    bytes
}

/// The text in `bytes`.
///
/// # Panics
///
/// If they are not UTF-8.
pub const fn text_of(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("texts were joined"),
    }
}
