//! A stored event with the values of its fields.

use std::fmt;
use std::ops::Index;
use std::thread::{self, ThreadId};
use tracepoint_core::field;
use tracepoint_core::internal::nearest_names;
use tracepoint_core::marker::{FieldView, MarkerDescriptor};

/// An event of a [`TestSession`](super::TestSession). `event["field"]` is a field's value.
#[derive(Clone, Debug)]
pub struct Event {
    marker: &'static MarkerDescriptor,
    name: String,
    time: u64,
    thread: ThreadId,
    values: Vec<Value>,
}

impl Event {
    pub(super) fn new(time: u64, event: FieldView<'_>) -> Self {
        let marker = event.descriptor();
        let values = (0..).map_while(|index| event.get(index)).map(Value::of).collect();
        Self { marker, name: marker.full_name(), time, thread: thread::current().id(), values }
    }

    /// `provider:name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Time of the event, in ns of the process's trace clock.
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// The thread that fired it.
    pub const fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Returns the value of the field called `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.marker.fields().iter().position(|field| field.name == name).and_then(|index| self.values.get(index))
    }
}

impl Index<&str> for Event {
    type Output = Value;

    /// # Panics
    ///
    /// If the event has no such field.
    fn index(&self, name: &str) -> &Value {
        let Some(value) = self.get(name) else {
            let nearest = nearest_names(name, self.marker.fields().iter().map(|field| field.name));
            panic!("{} has no field `{name}`; nearest: {}", self.name, nearest.join(", "));
        };
        value
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{", self.name)?;
        for (index, (field, value)) in self.marker.fields().iter().zip(&self.values).enumerate() {
            write!(f, "{} {} = {value}", if index == 0 { "" } else { "," }, field.name)?;
        }
        f.write_str(" }")
    }
}

/// The value of a field. Compares with numbers, booleans, text and bytes; values of another kind are unequal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// An integer, or an enumeration.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text.
    Text(String),
    /// The bytes of a path.
    Path(Vec<u8>),
    /// The value of an `Option` that is `None`.
    Absent,
    /// The elements of an array or a sequence.
    Elements(Vec<Value>),
}

impl Value {
    fn of(value: field::Value<'_>) -> Self {
        match value {
            field::Value::Unsigned(value) => Self::Integer(value.into()),
            field::Value::Signed(value) => Self::Integer(value.into()),
            field::Value::Float(value) => Self::Float(value),
            field::Value::Bool(value) => Self::Bool(value),
            field::Value::Text(value) => Self::Text(value.to_owned()),
            field::Value::Path(value) => Self::Path(value.to_owned()),
            field::Value::Absent => Self::Absent,
            field::Value::Elements(value) => {
                Self::Elements((0..value.len()).filter_map(|index| value.get(index)).map(Self::of).collect())
            }
            other => Self::Text(format!("{other:?}")),
        }
    }

    /// Returns the value, if it is an integer.
    pub const fn integer(&self) -> Option<i128> {
        if let Self::Integer(value) = self { Some(*value) } else { None }
    }

    /// Returns the value, if it is text.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(value) = self { Some(value) } else { None }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Absent => f.write_str("none"),
            Self::Path(value) => write!(f, "{:?}", String::from_utf8_lossy(value)),
            Self::Elements(values) => {
                let shown: Vec<_> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", shown.join(", "))
            }
        }
    }
}

macro_rules! compares_with_integers {
    ($($ty:ty)+) => {$(
        impl PartialEq<$ty> for Value {
            fn eq(&self, other: &$ty) -> bool {
                self.integer() == i128::try_from(*other).ok()
            }
        }
    )+};
}

compares_with_integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        *self == Self::Bool(*other)
    }
}

impl PartialEq<f64> for Value {
    fn eq(&self, other: &f64) -> bool {
        *self == Self::Float(*other)
    }
}

impl PartialEq<str> for Value {
    /// A path equals the text with the same bytes.
    fn eq(&self, other: &str) -> bool {
        *self == *other.as_bytes()
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        match self {
            Self::Text(text) => text.as_bytes() == other,
            Self::Path(bytes) => bytes == other,
            Self::Elements(values) => values.len() == other.len() && values.iter().zip(other).all(|(a, b)| *a == *b),
            _ => false,
        }
    }
}
