//! Writes items as text: events exactly as `babeltrace2` does by default, one per line.

mod decimal;
mod float;
mod literal;
mod time;

use std::io::{self, Write};

use crate::event::Event;
use crate::loss::{Loss, LossKind};
use crate::merge::Item;
use crate::metadata::{EnvValue, Metadata};
use crate::value::StructValue;
use time::Clock;

/// Members of a packet's context that are not shown: they describe the packet and not its events.
pub(crate) const PACKET_MEMBERS: [&str; 6] =
    ["timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"];

/// How items are written.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TextOptions {
    /// Show times in UTC instead of the local time zone.
    pub utc: bool,
    /// Show the date before each time.
    pub date: bool,
}

/// Writes items, one line each. It keeps the time of the last event to show the distance to the next one.
#[derive(Debug)]
pub struct TextWriter {
    clock: Clock,
    last_ns: Option<i64>,
    line: Vec<u8>,
    /// The origin of the last event, and the metadata that it is from.
    origin: Option<(Metadata, Vec<u8>)>,
}

impl TextWriter {
    /// A writer that has seen no event.
    pub fn new(options: TextOptions) -> Self {
        Self { clock: Clock::new(options), last_ns: None, line: Vec::new(), origin: None }
    }

    /// Writes one item and a line feed, in one piece.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_item(&mut self, out: &mut impl Write, item: &Item) -> io::Result<()> {
        self.line.clear();
        match item {
            Item::Event(event) => self.event(event)?,
            Item::Loss(loss) => self.loss(loss)?,
            Item::Damage(damage) => write!(self.line, "[damage: {damage}]")?,
        }
        self.line.push(b'\n');
        out.write_all(&self.line)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        if event.stream.clock().is_some() {
            self.time(event.time_ns);
        }
        let metadata = &event.stream.metadata;
        if !self.origin.as_ref().is_some_and(|(of, _)| of.is_same(metadata)) {
            self.origin = Some((metadata.clone(), origin(metadata)));
        }
        if let Some((_, origin)) = &self.origin {
            self.line.extend_from_slice(origin);
        }
        values(&mut self.line, event, event.packet_context.as_deref())
    }

    /// The time, and the distance to that of the last event.
    fn time(&mut self, time_ns: i64) {
        self.line.push(b'[');
        self.clock.write(&mut self.line, time_ns);
        self.line.extend_from_slice(b"] (+");
        match self.last_ns {
            None => self.line.extend_from_slice(b"?.?????????"),
            Some(last) => {
                let distance = time_ns.abs_diff(last);
                if time_ns < last {
                    self.line.push(b'-');
                }
                decimal::write(&mut self.line, distance / 1_000_000_000);
                decimal::write_fraction(&mut self.line, distance % 1_000_000_000);
            }
        }
        self.last_ns = Some(time_ns);
        self.line.extend_from_slice(b") ");
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        if loss.stream.clock().is_some() {
            self.line.push(b'[');
            self.clock.write(&mut self.line, loss.from_ns);
            self.line.extend_from_slice(b" to ");
            self.clock.write(&mut self.line, loss.to_ns);
            self.line.extend_from_slice(b"] ");
        }
        self.line.extend_from_slice(b"[lost: ");
        match loss.kind {
            LossKind::Events(Some(count)) => counted(&mut self.line, count, "event")?,
            LossKind::Events(None) => self.line.extend_from_slice(b"perhaps events, their number is unknown"),
            LossKind::Renumbered { previous, number } => {
                write!(self.line, "perhaps packets: number {number} comes after {previous}")?;
            }
            LossKind::Packets { packets, events } => {
                match packets {
                    Some(count) => counted(&mut self.line, count, "packet")?,
                    None => self.line.extend_from_slice(b"packets"),
                }
                if let Some(events) = events {
                    self.line.extend_from_slice(b" with ");
                    counted(&mut self.line, events, "event")?;
                }
            }
        }
        write!(self.line, ", in {}]", loss.stream.file.display())
    }
}

/// Appends the text of an event alone: its name and its values, without time, origin and packet, and without a line feed.
pub fn write_event(out: &mut Vec<u8>, event: &Event) {
    // Writing to memory cannot fail.
    let _ = values(out, event, None);
}

/// `name: { values }`.
fn values(line: &mut Vec<u8>, event: &Event, packet: Option<&StructValue>) -> io::Result<()> {
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

fn counted(line: &mut Vec<u8>, count: u64, noun: &str) -> io::Result<()> {
    write!(line, "{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The origin of the trace, `host:process:(pid) `, as far as its environment has it.
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

/// Whether a terminal acts on this character instead of showing it: control characters (C0, DEL and C1), line and paragraph separators, and
/// those that change the direction of text, by which a line can be made to read as another one.
pub fn is_control(c: char) -> bool {
    let is_directional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_directional
}

/// Text from the metadata without quotes. Control characters are shown as `\u{1b}`: a hostile trace must not control the terminal.
fn plain(line: &mut Vec<u8>, text: &str) {
    for c in text.chars() {
        if is_control(c) {
            line.extend(c.escape_unicode().map(|c| c as u8));
        } else {
            line.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}
