//! The values of an event as 8-byte words, for tools that read the memory of the program.
//!
//! A number is one word, extended to 64 bits. A text, a path, an array or a sequence is two words: the address of the first element, and the number
//! of elements. An `Option` of a number is two words, 0 or 1 and the number; for any other `Option`, `None` is the address 0. A float is stored as
//! the bits of an `f64`.

use super::types::{FieldDescriptor, FieldType};
use super::value::{Fields, Value};

/// Maximum number of words passed to a tool as separate arguments, the same as in C programs with `sys/sdt.h`. If there are more, the tool gets two
/// arguments: the address of the first word, and the number of words.
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
    /// Fills in the words, and returns the base address of the arguments, which is valid as long as `self` is not moved.
    pub fn fill(&mut self, fields: &[FieldDescriptor], event: &impl Fields) -> *const u64 {
        fill(&mut self.words, fields, event);
        if N <= MAX_ARGUMENTS {
            return self.words.as_ptr();
        }
        self.record = [exposed(self.words.as_ptr()), N as u64];
        self.record.as_ptr()
    }
}

/// The address of data that a tool reads.
fn exposed<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}

/// Compiled once for all markers.
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
