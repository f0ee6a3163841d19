//! An event whose values are decoded on demand.

use std::sync::Arc;

use tracepoint_ring::field;

use crate::event::{Event, Stream};
use crate::metadata::EventClass;
use crate::metadata::types::{Field, StructType};
use crate::record::layout::RecordLayout;
use crate::value::{StructValue, Value};

/// An event, decoded or still in the bytes of its packet.
///
/// Its values are numbered: first the fields of the event, then the members of its own context, of its stream's, and of its packet's.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    pub(crate) time_ns: i64,
    pub(crate) cycles: u64,
    pub(crate) stream: &'a Arc<Stream>,
    pub(crate) class: &'a Arc<EventClass>,
    pub(crate) packet_context: Option<&'a StructValue>,
    pub(crate) values: Values<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a> {
    /// In the bytes of a record.
    Record(&'a RecordLayout, &'a [u8]),
    Decoded(&'a Event),
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            time_ns: event.time_ns,
            cycles: event.cycles,
            stream: &event.stream,
            class: &event.class,
            packet_context: event.packet_context.as_deref(),
            values: Values::Decoded(event),
        }
    }
}

impl<'a> EventView<'a> {
    /// The time of recording, in nanoseconds since the epoch; 0 if the stream has no clock.
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The same time in cycles of the clock.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Its stream.
    pub fn stream(&self) -> &'a Arc<Stream> {
        self.stream
    }

    /// Its kind.
    pub fn class(&self) -> &'a Arc<EventClass> {
        self.class
    }

    /// The event, if it is decoded.
    pub fn decoded(&self) -> Option<&'a Event> {
        match self.values {
            Values::Record(..) => None,
            Values::Decoded(event) => Some(event),
        }
    }

    /// The value with this number; `None` if there is none, or if it is a structure, a variant, or an array with elements other than bytes. Texts
    /// and bytes are [`field::Value::Path`], and a `bool` is [`field::Value::Bool`]. An `Option` of a traced program is its value, or
    /// [`field::Value::Absent`]. If the event is not decoded, this skips over the texts and sequences before the value.
    #[inline]
    pub fn value(&self, mut index: usize) -> Option<field::Value<'a>> {
        match self.values {
            Values::Record(layout, record) if index < layout.len() => return layout.value(record, index),
            Values::Record(layout, _) => index -= layout.len(),
            Values::Decoded(event) => {
                for part in [&event.fields, &event.context, &event.stream_context].into_iter().flatten() {
                    if index < part.len() {
                        return part.at(index).and_then(convert);
                    }
                    index -= part.len();
                }
            }
        }
        self.packet_context?.at(index).and_then(convert)
    }

    /// The id of its thread, if a context has it. Searches the contexts by name.
    pub fn tid(&self) -> Option<u64> {
        let fields = self.class.fields.as_ref().map_or(0, |ty| ty.fields.len());
        let contexts = [&self.class.context, &self.stream.class.event_context, &self.stream.class.packet_context];
        let number = |name: &str| {
            let mut members = contexts.into_iter().flatten().flat_map(|ty: &Arc<StructType>| ty.fields.iter());
            let index = fields + members.position(|member: &Field| member.name() == name)?;
            match self.value(index)? {
                field::Value::Unsigned(tid) => Some(tid),
                field::Value::Signed(tid) => u64::try_from(tid).ok(),
                _ => None,
            }
        };
        number("vtid").or_else(|| number("tid"))
    }
}

fn convert(value: &Value) -> Option<field::Value<'_>> {
    let Some(value) = value.present() else { return Some(field::Value::Absent) };
    Some(match value {
        Value::Int(int) if int.truth => field::Value::Bool(int.value != 0),
        Value::Int(int) | Value::Enum(int, _) if int.signed => field::Value::Signed(i64::try_from(int.value).ok()?),
        Value::Int(int) | Value::Enum(int, _) => field::Value::Unsigned(int.pattern()),
        Value::F32(number) => field::Value::Float(f64::from(*number)),
        Value::F64(number) => field::Value::Float(*number),
        Value::String(bytes) | Value::Bytes(bytes, _) => field::Value::Path(bytes),
        _ => return None,
    })
}
