//! Writes items as JSON: one object per line. `type` is the type of the item; an event or a loss serialised by itself has none.
//!
//! An event is `{"type":"event","time_ns":…,"time":"…","name":"…","loglevel":6,"level":"Info","host":"…","program":"…","pid":…,"tid":…,
//! "thread":"…","stream":{…},"packet_context":{…},"stream_context":{…},"context":{…},"fields":{…}}`; parts that an event does not have are
//! left out. `thread` is the name of the thread, recorded by a channel on request. `time_ns` counts from the epoch, `time` is the same in RFC 3339
//! and UTC; a stream without a clock has no times. A loss is `{"type":"loss","from_ns":…,"to_ns":…,"stream":…}`
//! with `"events"`, and for missing packets `"packets"`; an unknown number is `null`. If a packet number does not increase,
//! it has `"previous_number"` and `"number"`. Damage is `{"type":"damage","file":…,"offset":…,"reason":…}`.
//!
//! Values: integers are numbers of up to 64 bits, a `bool` is `true` or `false`. Floating-point numbers that JSON cannot represent are the strings
//! `"NaN"`, `"-NaN"`, `"Infinity"` and `"-Infinity"`. Text is a string; text that is not UTF-8 is `{"$bytes":"68ff"}`, its bytes in
//! base 16 (names of fields contain no `$`). Characters that control a terminal are escaped. Arrays, including arrays of bytes, are arrays.
//! Structures are objects without the lengths of sequences and the tags of `Option`s. An enumeration is `{"value":1,"labels":["Run"]}`, and a variant
//! is an object with only its selected option; an `Option` of a traced program is its value or `null`.

pub(crate) mod text;
mod writer;

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};
use tz::UtcDateTime;

use crate::event::{Event, Stream};
use crate::item::Item;
use crate::loss::{Loss, LossKind};
use crate::text::PACKET_MEMBERS;
use crate::value::{Int, StructValue, Value};

pub use text::Text;
pub use writer::{copy, to_string, to_writer};

/// Writes one item and a line feed.
///
/// # Errors
/// Those of `out`.
pub fn write_item(out: &mut impl Write, item: &Item) -> io::Result<()> {
    to_writer(&mut *out, item)?;
    out.write_all(b"\n")
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.stream.clock().is_some() {
            map.serialize_entry("time_ns", &self.time_ns)?;
            map.serialize_entry("time", &rfc3339(self.time_ns))?;
        }
        map.serialize_entry("name", self.name())?;
        if let Some(level) = self.loglevel() {
            map.serialize_entry("loglevel", &level)?;
            if let Some(name) = self.level_name() {
                map.serialize_entry("level", name)?;
            }
        }
        let origin = self.origin();
        for (name, text) in [("host", origin.host), ("program", origin.program)] {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        for (name, number) in [("pid", origin.pid), ("tid", origin.tid)] {
            if let Some(number) = number {
                map.serialize_entry(name, &number)?;
            }
        }
        if let Some(thread) = origin.thread {
            map.serialize_entry("thread", &Text(thread))?;
        }
        map.serialize_entry("stream", &*self.stream)?;
        if let Some(context) = &self.packet_context {
            map.serialize_entry("packet_context", &Members(context, &PACKET_MEMBERS))?;
        }
        let parts = [("stream_context", &self.stream_context), ("context", &self.context), ("fields", &self.fields)];
        for (name, part) in parts {
            if let Some(part) = part {
                map.serialize_entry(name, &Members(part, &[]))?;
            }
        }
        map.end()
    }
}

impl Serialize for Stream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("class", &self.class.id)?;
        if let Some(instance) = self.instance {
            map.serialize_entry("instance", &instance)?;
        }
        map.serialize_entry("file", &Text::of(&self.file))?;
        map.end()
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.stream.clock().is_some() {
            map.serialize_entry("from_ns", &self.from_ns)?;
            map.serialize_entry("to_ns", &self.to_ns)?;
        }
        map.serialize_entry("stream", &*self.stream)?;
        match self.kind {
            LossKind::Events(events) => map.serialize_entry("events", &events)?,
            LossKind::Packets { packets, events } => {
                map.serialize_entry("packets", &packets)?;
                map.serialize_entry("events", &events)?;
            }
            LossKind::Renumbered { previous, number } => {
                map.serialize_entry("packets", &())?;
                map.serialize_entry("previous_number", &previous)?;
                map.serialize_entry("number", &number)?;
            }
        }
        map.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(int) => int.serialize(serializer),
            Self::Enum(int, ty) => {
                let labels: Vec<&str> = ty.labels(int.value).collect();
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("value", int)?;
                map.serialize_entry("labels", &labels)?;
                map.end()
            }
            Self::F32(number) if number.is_finite() => serializer.serialize_f32(*number),
            Self::F32(number) => serializer.serialize_str(not_finite(f64::from(*number))),
            Self::F64(number) if number.is_finite() => serializer.serialize_f64(*number),
            Self::F64(number) => serializer.serialize_str(not_finite(*number)),
            Self::String(bytes) => Text(bytes).serialize(serializer),
            Self::Bytes(bytes, _) => serializer.collect_seq(bytes.iter()),
            Self::Array(values) => serializer.collect_seq(values),
            Self::Struct(structure) => Members(structure, &[]).serialize(serializer),
            Self::Variant(option, value) => {
                match self.present() {
                    None => return serializer.serialize_none(),
                    Some(present) if !std::ptr::eq(present, self) => return present.serialize(serializer),
                    Some(_) => {}
                }
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(&**option, &**value)?;
                map.end()
            }
        }
    }
}

impl Serialize for Int {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self { truth: true, value, .. } => serializer.serialize_bool(*value != 0),
            Self { signed: true, value, .. } => serializer.serialize_i64(*value as i64),
            _ => serializer.serialize_u64(self.pattern()),
        }
    }
}

/// The members of a structure, except those with these names and those that are redundant with the next member.
struct Members<'a>(&'a StructValue, &'a [&'a str]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(structure, hidden) = self;
        let members = structure
            .iter()
            .enumerate()
            .filter(|(index, (name, _))| !structure.ty.is_length(*index) && !hidden.contains(name));
        serializer.collect_map(members.map(|(_, member)| member))
    }
}

fn not_finite(number: f64) -> &'static str {
    match (number.is_nan(), number.is_sign_negative()) {
        (true, false) => "NaN",
        (true, true) => "-NaN",
        (false, false) => "Infinity",
        (false, true) => "-Infinity",
    }
}

fn rfc3339(time_ns: i64) -> String {
    // All times within 64 bits of nanoseconds are within the calendar's range.
    UtcDateTime::from_total_nanoseconds(time_ns.into()).unwrap_or(UtcDateTime::UNIX_EPOCH).to_string()
}
