//! Events in the default format of `babeltrace2`.

use std::io;

use super::{PACKET_MEMBERS, decimal, literal, plain};
use crate::event::Event;
use crate::metadata::{EnvValue, Metadata};
use crate::value::StructValue;

/// State kept from one event to the next.
#[derive(Debug, Default)]
pub(super) struct Babeltrace {
    last_ns: Option<i64>,
    /// The origin of the last event, and its metadata.
    origin: Option<(Metadata, Vec<u8>)>,
}

impl Babeltrace {
    /// Appends the distance to the time of the last event: `(+0.000016705) `.
    pub(super) fn distance(&mut self, line: &mut Vec<u8>, time_ns: i64) {
        line.extend_from_slice(b"(+");
        match self.last_ns {
            None => line.extend_from_slice(b"?.?????????"),
            Some(last) => {
                if time_ns < last {
                    line.push(b'-');
                }
                decimal::write_seconds(line, time_ns.abs_diff(last));
            }
        }
        self.last_ns = Some(time_ns);
        line.extend_from_slice(b") ");
    }

    /// Appends the part after the time.
    pub(super) fn event(&mut self, line: &mut Vec<u8>, event: &Event) -> io::Result<()> {
        let metadata = &event.stream.metadata;
        if !self.origin.as_ref().is_some_and(|(of, _)| of.is_same(metadata)) {
            self.origin = Some((metadata.clone(), origin(metadata)));
        }
        if let Some((_, origin)) = &self.origin {
            line.extend_from_slice(origin);
        }
        values(line, event, event.packet_context.as_deref())
    }
}

/// `name: { values }`.
pub(super) fn values(line: &mut Vec<u8>, event: &Event, packet: Option<&StructValue>) -> io::Result<()> {
    plain(line, event.name());
    line.extend_from_slice(b": ");
    let mut first = true;
    let mut part = |line: &mut Vec<u8>, value: Option<&StructValue>, hide: &[&str]| -> io::Result<()> {
        let Some(value) = value else {
            return Ok(());
        };
        let shown = value.iter().any(|(name, _)| !hide.contains(&name));
        if !shown && !hide.is_empty() {
            return Ok(());
        }
        if !first {
            line.extend_from_slice(b", ");
        }
        first = false;
        literal::members(line, value, hide)
    };
    part(line, packet, &PACKET_MEMBERS)?;
    part(line, event.stream_context.as_ref(), &[])?;
    part(line, event.context.as_ref(), &[])?;
    part(line, event.fields.as_ref(), &[])
}

/// The origin of the trace, `host:process:(pid) `, as far as its environment contains it.
fn origin(metadata: &Metadata) -> Vec<u8> {
    let mut line = Vec::new();
    for name in ["hostname", "procname", "vpid"] {
        let text = match (name, metadata.env_value(name)) {
            ("vpid", Some(EnvValue::Integer(pid))) => format!("({pid})"),
            ("hostname" | "procname", Some(EnvValue::String(text))) => text.clone(),
            _ => continue,
        };
        if !line.is_empty() {
            line.push(b':');
        }
        plain(&mut line, &text);
    }
    if !line.is_empty() {
        line.push(b' ');
    }
    line
}
