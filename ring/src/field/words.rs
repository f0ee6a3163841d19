//! The values of one event as words of 8 bytes, for tools that read the memory of the program.
//!
//! A number is one word, extended to 64 bits. A text, a path, an array and a sequence are two: the address of the first element, and the
//! number of elements. An `Option` of a number is two, 0 or 1 and the number; `None` of another is the address 0. A float is the bits of an
//! `f64`.

use super::types::{FieldDescriptor, FieldType};
use super::value::{Fields, Value};

/// The most words that a tool gets as arguments of their own, as many as C programs pass by `sys/sdt.h`. Of more it gets two arguments: the
/// address of the first word, and their number.
const MAX_ARGUMENTS: usize = 12;

/// The words of one event.
#[derive(Debug)]
pub struct Words<const N: usize> {
    words: [u64; N],
    record: [u64; 2],
}

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self { words: [0; N], record: [0; 2] }
    }
}

impl<const N: usize> Words<N> {
    /// Fills in the words, and returns the base address of the arguments, which is valid while `self` stays where it is.
    pub fn fill(&mut self, fields: &[FieldDescriptor], event: &impl Fields) -> *const u64 {
        fill(&mut self.words, fields, event);
        if N <= MAX_ARGUMENTS {
            return self.words.as_ptr();
        }
        self.record = [exposed(self.words.as_ptr()), N as u64];
        self.record.as_ptr()
    }
}

/// The address of something that a tool reads.
fn exposed<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// One copy for all markers.
#[inline(never)]
fn fill(words: &mut [u64], fields: &[FieldDescriptor], event: &impl Fields) {
    let mut words = words.iter_mut();
    let mut push = |word| {
        if let Some(next) = words.next() {
            *next = word;
        }
    };
    for (index, field) in fields.iter().enumerate() {
        let value = event.field(index).unwrap_or(Value::Absent);
        let (ty, is_optional) = match field.ty {
            FieldType::Optional { value } => (*value, true),
            ty => (ty, false),
        };
        let elements = match value {
            Value::Text(text) => Some((exposed(text.as_ptr()), text.len())),
            Value::Path(path) => Some((exposed(path.as_ptr()), path.len())),
            Value::Elements(elements) => Some((exposed(elements.as_ptr()), elements.len())),
            Value::Absent if matches!(ty, FieldType::Text | FieldType::Path) => Some((0, 0)),
            _ => None,
        };
        if let Some((address, len)) = elements {
            push(address);
            push(len as u64);
            continue;
        }
        if is_optional {
            push(u64::from(!matches!(value, Value::Absent)));
        }
        push(match value {
            Value::Unsigned(number) => number,
            Value::Signed(number) => number.cast_unsigned(),
            Value::Float(number) => number.to_bits(),
            Value::Bool(is) => is.into(),
            _ => 0,
        });
    }
}
