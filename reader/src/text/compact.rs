//! The compact style.
//!
//! Text that is the same for many events is formatted once: the origin for each packet, the names of the event and its fields for each kind of
//! event. Both are cached by the address of the packet context or class, which is kept alive with them.

mod pointer_cache;
mod value;

use std::io;
use std::sync::Arc;

use super::{PACKET_MEMBERS, TextOptions, decimal, literal, plain};
use crate::event::{Event, Stream};
use crate::metadata::EventClass;
use crate::metadata::types::{Field, Length, StructType, Type};
use crate::origin;
use crate::span::{DURATION, SpanPart};
use crate::value::StructValue;
use pointer_cache::PointerCache;

const DIM: &[u8] = b"\x1b[2m";
pub(super) const RED: &[u8] = b"\x1b[31m";
const YELLOW: &[u8] = b"\x1b[33m";
const CYAN: &[u8] = b"\x1b[36m";
pub(super) const PLAIN: &[u8] = b"\x1b[0m";

/// The least important levels shown as an error, and as a warning.
const ERR: i64 = 3;
const WARNING: i64 = 4;

/// Additional members of a packet's context that are not shown: the thread is part of the origin.
const HIDDEN: [&str; 3] = ["tid", "events_before", "checksum"];

#[derive(Debug)]
pub(super) struct Compact {
    options: TextOptions,
    packets: PointerCache<Stream, Packet>,
    events: PointerCache<EventClass, Layout>,
}

/// Text that is the same for all events of a packet.
#[derive(Debug)]
struct Packet {
    context: Option<Arc<StructValue>>,
    /// `app[19270] `.
    origin: Vec<u8>,
    /// ` cpu_id=3`.
    members: Vec<u8>,
}

/// The format of events of a kind.
#[derive(Debug)]
struct Layout {
    name: Vec<u8>,
    /// True if its contexts contain its origin.
    has_origin: bool,
    stream_context: Vec<Member>,
    context: Vec<Member>,
    fields: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    index: usize,
    /// ` name=`.
    prefix: Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Address,
    /// Nanoseconds, with a unit.
    Duration,
}

impl Compact {
    pub(super) fn new(options: TextOptions) -> Self {
        Self { options, packets: PointerCache::new(), events: PointerCache::new() }
    }

    pub(super) const fn has_color(&self) -> bool {
        self.options.color
    }

    /// Appends a time and a space.
    pub(super) fn time(&self, line: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.options.color {
            line.extend_from_slice(DIM);
        }
        write(line);
        if self.options.color {
            line.extend_from_slice(PLAIN);
        }
        line.push(b' ');
    }

    /// Appends the part after the time.
    pub(super) fn event(&mut self, line: &mut Vec<u8>, event: &Event) -> io::Result<()> {
        let options = &self.options;
        let layout = self.events.get(&event.class, |_| true, || Layout::new(event, options));
        let is_same = |packet: &Packet| match (&packet.context, &event.packet_context) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let packet = self.packets.get(&event.stream, is_same, || Packet::new(event, options));
        if layout.has_origin {
            write_origin(line, event, options);
        } else {
            line.extend_from_slice(&packet.origin);
        }
        line.extend_from_slice(&layout.name);
        line.extend_from_slice(&packet.members);
        let parts = [
            (&event.stream_context, &layout.stream_context),
            (&event.context, &layout.context),
            (&event.fields, &layout.fields),
        ];
        for (values, members) in parts {
            let Some(values) = values else { continue };
            for member in members {
                let Some(found) = values.values.get(member.index) else { continue };
                line.extend_from_slice(&member.prefix);
                let is_written = match member.form {
                    Form::Plain => false,
                    Form::Address => value::address(line, found),
                    Form::Duration => value::duration(line, found),
                };
                if !is_written {
                    value::write(line, found)?;
                }
            }
        }
        Ok(())
    }
}

impl Packet {
    fn new(event: &Event, options: &TextOptions) -> Self {
        let (mut origin, mut members) = (Vec::new(), Vec::new());
        write_origin(&mut origin, event, options);
        for (name, value) in event.packet_context.iter().flat_map(|context| context.iter()) {
            let is_shown = match &options.fields {
                Some(names) => names.iter().any(|given| given == name),
                None => !PACKET_MEMBERS.contains(&name) && !HIDDEN.contains(&name),
            };
            if is_shown {
                members.extend(prefix(name, options));
                // Writing to memory cannot fail.
                let _ = value::write(&mut members, value);
            }
        }
        Self { context: event.packet_context.clone(), origin, members }
    }
}

impl Layout {
    fn new(event: &Event, options: &TextOptions) -> Self {
        let contexts = [&event.stream.class.event_context, &event.class.context];
        let mut names = contexts.into_iter().flatten().flat_map(|ty| ty.fields.iter().map(Field::name));
        let mut name = Vec::new();
        if options.color {
            name.extend_from_slice(match event.loglevel() {
                Some(..=ERR) => RED,
                Some(WARNING) => YELLOW,
                _ => CYAN,
            });
        }
        plain(&mut name, event.name());
        if options.color {
            name.extend_from_slice(PLAIN);
        }
        let mut fields = members(event.class.fields.as_deref(), &[], options);
        if let (Some((_, SpanPart::End)), Some(ty)) = (event.class.span(), &event.class.fields) {
            for member in fields.iter_mut().filter(|member| ty.fields[member.index].name() == DURATION) {
                *member = Member { prefix: prefix("duration", options), form: Form::Duration, ..*member };
            }
        }
        Self {
            name,
            has_origin: names.any(|name| origin::MEMBERS.contains(&name)),
            stream_context: members(event.stream.class.event_context.as_deref(), &origin::MEMBERS, options),
            context: members(event.class.context.as_deref(), &origin::MEMBERS, options),
            fields,
        }
    }
}

/// The members of a structure that are shown: the requested ones; by default all except those named in `hidden` and the
/// lengths of sequences.
fn members(ty: Option<&StructType>, hidden: &[&str], options: &TextOptions) -> Vec<Member> {
    let Some(ty) = ty else { return Vec::new() };
    let is_shown = |index: &usize| {
        let name = ty.fields[*index].name();
        match &options.fields {
            Some(names) => names.iter().any(|given| given == name),
            None => !hidden.contains(&name) && !ty.is_length(*index),
        }
    };
    let member = |index: usize| {
        let field = &ty.fields[index];
        let form = match field {
            field if is_address(field) => Form::Address,
            field if field.ty.is_duration() => Form::Duration,
            _ => Form::Plain,
        };
        Member { index, prefix: prefix(field.name(), options), form }
    };
    (0..ty.fields.len()).filter(is_shown).map(member).collect()
}

/// True if a field has the size and the name of an IP address.
fn is_address(field: &Field) -> bool {
    const WORDS: [&str; 11] =
        ["ip", "ip4", "ip6", "ipv4", "ipv6", "addr", "address", "saddr", "daddr", "v4addr", "v6addr"];
    let has_size = match &field.ty {
        Type::Integer(integer) => integer.bits == 32 && integer.order == crate::metadata::types::ByteOrder::Big,
        Type::Array(array) => matches!(array.length, Length::Fixed(4 | 16)) && array.element.is_plain_byte().is_some(),
        _ => false,
    };
    has_size && field.name().split('_').any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()))
}

/// ` name=`.
fn prefix(name: &str, options: &TextOptions) -> Vec<u8> {
    let mut prefix = vec![b' '];
    if options.color {
        prefix.extend_from_slice(DIM);
    }
    plain(&mut prefix, name);
    prefix.push(b'=');
    if options.color {
        prefix.extend_from_slice(PLAIN);
    }
    prefix
}

/// `host app[pid/tid] `, as far as known.
fn write_origin(line: &mut Vec<u8>, event: &Event, options: &TextOptions) {
    let origin = event.origin();
    let begin = line.len();
    if let Some(host) = origin.host.filter(|_| options.host) {
        plain(line, host);
        line.push(b' ');
    }
    match (origin.thread, origin.program) {
        (Some(thread), _) => plain(line, &String::from_utf8_lossy(thread)),
        (None, Some(program)) => plain(line, program),
        (None, None) => {}
    }
    let thread = origin.tid.filter(|tid| origin.pid != Some(*tid));
    let ids = [origin.pid, thread];
    for (index, id) in ids.iter().flatten().enumerate() {
        line.push(if index == 0 { b'[' } else { b'/' });
        decimal::write(line, *id);
    }
    if ids.iter().flatten().next().is_some() {
        line.push(b']');
    }
    if line.len() > begin {
        line.push(b' ');
    }
}
