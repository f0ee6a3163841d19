//! Converts field values to the few types that formats support.

use std::borrow::Cow;
use std::sync::Arc;

use tracepoint_reader::metadata::types::StructType;
use tracepoint_reader::metadata::{EventClass, StreamClass};
use tracepoint_reader::{Event, StructValue, Value};

use crate::format::{Span, SpanEnd};

#[derive(Clone, Debug)]
pub(crate) enum Plain<'a> {
    /// An absent value.
    None,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// Text; invalid UTF-8 is replaced. An array of bytes becomes hexadecimal text.
    Text(Cow<'a, str>),
    Array(&'a [Value]),
    Struct(&'a StructValue),
    /// The option of another tracer's variant, and its value.
    Variant(&'a str, &'a Value),
}

impl<'a> From<&'a Value> for Plain<'a> {
    fn from(value: &'a Value) -> Self {
        let Some(value) = value.present() else { return Self::None };
        match value {
            Value::Int(int) if int.truth => Self::Bool(int.value != 0),
            Value::Enum(int, ty) if ty.labels(int.value).next().is_some() => {
                Self::Text(ty.labels(int.value).next().unwrap_or_default().into())
            }
            Value::Int(int) | Value::Enum(int, _) if int.signed => Self::Signed(int.value as i64),
            Value::Int(int) | Value::Enum(int, _) => Self::Unsigned(int.pattern()),
            Value::F32(number) => Self::Float(f64::from(*number)),
            Value::F64(number) => Self::Float(*number),
            Value::String(bytes) => Self::Text(String::from_utf8_lossy(bytes)),
            Value::Bytes(bytes, _) => Self::Text(base16(bytes).into()),
            Value::Array(values) => Self::Array(values),
            Value::Struct(members) => Self::Struct(members),
            Value::Variant(option, value) => Self::Variant(option, value),
            _ => Self::None,
        }
    }
}

/// Formats bytes in hexadecimal.
pub(crate) fn base16(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Context members that identify the origin of an event; formats show them separately.
const ORIGIN: [&str; 5] = ["vpid", "vtid", "pid", "tid", "procname"];

/// Returns whether a member of a context is shown among the fields.
fn is_shown(name: &str) -> bool {
    !ORIGIN.contains(&name)
}

/// The members of a structure, except length fields.
fn members<'a>(
    ty: Option<&'a Arc<StructType>>,
    value: Option<&'a StructValue>,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let members = ty.zip(value).into_iter().flat_map(|(ty, value)| value.iter().enumerate().map(move |one| (ty, one)));
    members.filter(|(ty, (index, _))| !ty.is_length(*index)).map(|(_, (_, member))| member)
}

/// The fields of an event, followed by the members of its contexts.
pub(crate) fn fields(event: &Event) -> impl Iterator<Item = (&str, &Value)> {
    let context = members(event.class.context.as_ref(), event.context.as_ref());
    let stream_context = members(event.stream.class.event_context.as_ref(), event.stream_context.as_ref());
    payload(event).chain(context.chain(stream_context).filter(|(name, _)| is_shown(name)))
}

fn payload(event: &Event) -> impl Iterator<Item = (&str, &Value)> {
    members(event.class.fields.as_ref(), event.fields.as_ref())
}

/// The names that [`fields`] returns for events of this class.
pub(crate) fn names<'a>(class: &'a EventClass, stream: &'a StreamClass) -> impl Iterator<Item = &'a str> {
    let of = |ty: &'a Option<Arc<StructType>>| {
        let ty = ty.iter().flat_map(|ty| ty.fields.iter().enumerate().map(move |(index, field)| (ty, index, field)));
        ty.filter(|(ty, index, _)| !ty.is_length(*index)).map(|(_, _, field)| field.name())
    };
    of(&class.fields).chain(of(&class.context).chain(of(&stream.event_context)).filter(|name| is_shown(name)))
}

/// The `provider` in `provider:name`; the complete name, if it has no provider.
pub(crate) fn provider(name: &str) -> &str {
    name.split_once(':').map_or(name, |(provider, _)| provider)
}

/// The fields of both events of a span. Of the end event, only fields that add information.
pub(crate) fn span_fields<'a>(span: &Span<'a>) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
    let has_begin = span.begin.is_some();
    let is_new = move |name: &str| !has_begin || !["span_id", "duration_ns"].contains(&name);
    let of_end = span.end_event().into_iter().flat_map(payload);
    span.begin.into_iter().flat_map(fields).chain(of_end.filter(move |(name, _)| is_new(name)))
}

/// Describes the missing part of a span, if any.
pub(crate) fn missing(span: &Span<'_>) -> Option<&'static str> {
    match (span.begin, span.end) {
        (None, _) => Some("its begin; it is computed from its duration"),
        (_, SpanEnd::Open) => Some("its end; it was open at the end of the trace"),
        (_, SpanEnd::Forgotten) => Some("its end; too many spans were open, or another one began with its id"),
        (_, SpanEnd::Ended(..)) => None,
    }
}

/// The names of counters, and their values, for the numeric fields with these names.
pub(crate) fn counters<'a>(event: &'a Event, names: &'a [String]) -> impl Iterator<Item = (String, f64)> + use<'a> {
    let wanted = move |(name, _): &(&str, &Value)| names.iter().any(|wanted| wanted == name);
    fields(event).filter(wanted).filter_map(|(name, value)| {
        #[expect(clippy::cast_precision_loss, reason = "viewers draw them")]
        let number = match Plain::from(value) {
            Plain::Bool(truth) => f64::from(u8::from(truth)),
            Plain::Unsigned(number) => number as f64,
            Plain::Signed(number) => number as f64,
            Plain::Float(number) if number.is_finite() => number,
            _ => return None,
        };
        Some((format!("{}.{name}", event.name()), number))
    })
}
