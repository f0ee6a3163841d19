//! The properties of an event's fields that filters use.

use tracepoint_core::field::{FieldDescriptor, FieldType};

/// A field of an event.
#[derive(Clone, Debug)]
pub(crate) struct FilterField<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: FieldKind<'a>,
    /// The type, for messages.
    pub(crate) ty: String,
}

/// The operations that a field supports.
#[derive(Clone, Debug)]
pub(crate) enum FieldKind<'a> {
    Integer {
        signed: bool,
    },
    /// An integer: nanoseconds.
    Duration,
    /// An integer with names for some of its values.
    Enum(Vec<Label<'a>>),
    Truth,
    Float,
    /// A text, a path, or an array of bytes.
    Text,
    /// Those of the value's type, which differs between events.
    Any,
    /// Nothing.
    Other,
}

/// A name for the values from `first` to `last`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label<'a> {
    pub(crate) name: &'a str,
    pub(crate) first: i128,
    pub(crate) last: i128,
}

impl From<&FieldDescriptor> for FilterField<'static> {
    fn from(field: &FieldDescriptor) -> Self {
        Self { name: field.name, kind: (&field.ty).into(), ty: field.ty.to_string() }
    }
}

impl From<&FieldType> for FieldKind<'static> {
    fn from(ty: &FieldType) -> Self {
        match *ty {
            FieldType::Integer(integer) => Self::Integer { signed: integer.signed },
            FieldType::Bool => Self::Truth,
            FieldType::Duration => Self::Duration,
            FieldType::Enum { labels, .. } => {
                let label = |label: &'static tracepoint_core::field::EnumLabel| Label {
                    name: label.name,
                    first: label.value,
                    last: label.value,
                };
                Self::Enum(labels.iter().map(label).collect())
            }
            FieldType::Float { .. } => Self::Float,
            FieldType::Text | FieldType::Path => Self::Text,
            FieldType::Array { element, .. } | FieldType::Sequence { element } if is_byte(element) => Self::Text,
            FieldType::Optional { value } => value.into(),
            FieldType::Any => Self::Any,
            _ => Self::Other,
        }
    }
}

/// Returns whether filters treat an array of these elements as text.
fn is_byte(element: &FieldType) -> bool {
    matches!(element, FieldType::Integer(integer) if integer.bits == 8 && !integer.signed)
}
