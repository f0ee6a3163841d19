//! Reads types from values, and names the key of a value that does not fit.

use super::{Table, Value};
use serde::de::value::SeqDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, Unexpected, VariantAccess,
    Visitor,
};
use std::fmt;

/// A text is not a table, or its values do not fit a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// What is wrong, without the keys.
    pub message: String,
    /// The keys to the value, the innermost one first.
    keys: Vec<String>,
}

impl TableError {
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), keys: Vec::new() }
    }

    /// The same error in the value of a key.
    pub(super) fn within(mut self, key: &str) -> Self {
        self.keys.push(key.to_owned());
        self
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (nth, key) in self.keys.iter().rev().enumerate() {
            write!(f, "{}{key}", if nth == 0 { "\nin `" } else { "." })?;
        }
        f.write_str(if self.keys.is_empty() { "" } else { "`" })
    }
}

impl std::error::Error for TableError {}

impl de::Error for TableError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message)
    }
}

/// A value that is read, as a type that the descriptions of a session have: bytes, tuples and the like are refused. Only the method of the visitor
/// that the value needs is called, because each one that is named here is compiled for each type.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a Value);

impl Reader<'_> {
    /// The error that something else was expected.
    fn mismatch(self, expected: &dyn Expected) -> TableError {
        let given = match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Unexpected::Signed(integer),
                None => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        de::Error::invalid_type(given, expected)
    }
}

/// Methods that differ only in their names, and in parameters that do not matter here.
macro_rules! methods {
    ($visit:path: $($method:ident($($type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $(_: $type,)* visitor: V) -> Result<V::Value, TableError> {
            $visit(self, visitor)
        }
    )*};
}

fn number<'de, V: Visitor<'de>>(Reader(value): Reader<'de>, visitor: V) -> Result<V::Value, TableError> {
    match (value.as_i64(), value.as_f64()) {
        (Some(integer), _) => visitor.visit_i64(integer),
        (None, Some(number)) => visitor.visit_f64(number),
        (None, None) => Err(Reader(value).mismatch(&visitor)),
    }
}

fn text<'de, V: Visitor<'de>>(Reader(value): Reader<'de>, visitor: V) -> Result<V::Value, TableError> {
    match value {
        Value::String(text) => visitor.visit_borrowed_str(text),
        other => Err(Reader(other).mismatch(&visitor)),
    }
}

fn members<'de, V: Visitor<'de>>(Reader(value): Reader<'de>, visitor: V) -> Result<V::Value, TableError> {
    match value {
        Value::Object(table) => visitor.visit_map(Members { rest: table.into_iter(), current: None }),
        other => Err(Reader(other).mismatch(&visitor)),
    }
}

fn any<'de, V: Visitor<'de>>(Reader(value): Reader<'de>, visitor: V) -> Result<V::Value, TableError> {
    value.deserialize_any(visitor).map_err(TableError::new)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of the functions above")]
fn refuse<'de, V: Visitor<'de>>(value: Reader<'de>, visitor: V) -> Result<V::Value, TableError> {
    Err(value.mismatch(&visitor))
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = TableError;

    methods! { number:
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_f32() deserialize_f64()
    }
    methods! { text: deserialize_str() deserialize_string() deserialize_identifier() }
    methods! { members: deserialize_map() deserialize_struct(&'static str, &'static [&'static str]) }
    methods! { any: deserialize_any() deserialize_ignored_any() }
    methods! { refuse:
        deserialize_char() deserialize_bytes() deserialize_byte_buf() deserialize_unit() deserialize_unit_struct(&'static str)
        deserialize_tuple(usize) deserialize_tuple_struct(&'static str, usize)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        match self.0 {
            Value::Bool(value) => visitor.visit_bool(*value),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Reader))),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TableError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, TableError> {
        visitor.visit_newtype_struct(self)
    }

    /// An enumeration is the name of a variant, or a table of one name and its value.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TableError> {
        let mut members = self.0.as_object().into_iter().flatten();
        let variant = match (self.0, members.next(), members.next()) {
            (Value::String(name), ..) => Variant { name, value: None },
            (_, Some((name, value)), None) => Variant { name, value: Some(value) },
            _ => return Err(self.mismatch(&"the name of a variant, or a table with one name")),
        };
        visitor.visit_enum(variant)
    }
}

/// A variant of an enumeration, with its value.
#[derive(Clone, Copy)]
struct Variant<'a> {
    name: &'a str,
    value: Option<&'a Value>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = TableError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), TableError> {
        seed.deserialize(self.name.into_deserializer()).map(|name| (name, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = TableError;

    fn unit_variant(self) -> Result<(), TableError> {
        match self.value {
            None => Ok(()),
            Some(value) => Err(Reader(value).mismatch(&"no value")),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, TableError> {
        let value = self.value.ok_or_else(|| TableError::new(format!("`{}` needs a value", self.name)))?;
        seed.deserialize(Reader(value)).map_err(|error| error.within(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TableError> {
        Err(Reader(self.value.unwrap_or(&Value::Null)).mismatch(&visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, TableError> {
        members(Reader(self.value.unwrap_or(&Value::Null)), visitor)
    }
}

impl<'de> IntoDeserializer<'de, TableError> for Reader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The members of a table, one after the other.
struct Members<'a> {
    rest: <&'a Table as IntoIterator>::IntoIter,
    current: Option<(&'a str, &'a Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = TableError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TableError> {
        self.current = self.rest.next().map(|(key, value)| (key.as_str(), value));
        self.current.map(|(key, _)| seed.deserialize(key.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TableError> {
        let (key, value) = self.current.take().unwrap_or(("", &Value::Null));
        seed.deserialize(Reader(value)).map_err(|error| error.within(key))
    }
}
