//! Writes items as text, one per line.
//!
//! The default style is compact: the time, the program with its process and thread, the event, and its fields by name.
//!
//! ```text
//! 16:24:31.821593164 app[19270] shop:answered path="/" status=200
//! ```
//!
//! [`Style::Babeltrace`] is the default format of `babeltrace2`.

mod babeltrace;
mod compact;
mod control;
mod decimal;
mod float;
mod literal;
mod time;

use std::io::{self, Write};

use crate::event::Event;
use crate::item::Item;
use crate::loss::{Loss, LossKind};
use babeltrace::Babeltrace;
use compact::Compact;
pub use control::{escape_controls, is_control};
use time::Clock;

/// Members of a packet's context that are not shown: they describe the packet and not its events.
pub(crate) const PACKET_MEMBERS: [&str; 6] =
    ["timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"];

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// `16:24:31.821593164 app[19270] shop:answered path="/" status=200`.
    ///
    /// The name before the process id is that of the thread if the channel records it, otherwise that of the program. The thread id follows the
    /// process id if it differs: `app[19270/19275]`. An array of bytes is a number in base 16, in the order of the bytes; with
    /// 4 or 16 bytes and a name like `saddr` or `peer_ip` it is an IP address, as is a 32-bit integer in network byte order with such a
    /// name. A duration has a unit: `took=2.637ms`. Members that only describe the packet, or count the elements of the next one, are left out.
    #[default]
    Compact,
    /// The default format of `babeltrace2`.
    Babeltrace,
}

/// The form of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeFormat {
    /// The time of day in the local time zone.
    #[default]
    Local,
    /// The time of day in UTC.
    Utc,
    /// Seconds since [`TextOptions::origin_ns`].
    Relative,
    /// Seconds since the previous event.
    Delta,
    /// Nanoseconds since 1970.
    Epoch,
}

/// Options for writing items.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TextOptions {
    /// The form of a line.
    pub style: Style,
    /// The form of times.
    pub time: TimeFormat,
    /// Show the date before each time of day.
    pub date: bool,
    /// The zero of relative times, in nanoseconds since the epoch; by default the time of the first event.
    pub origin_ns: Option<i64>,
    /// Show the name of the host on each line. The style of babeltrace2 always does so.
    pub host: bool,
    /// Show only the fields with these names; by default all. Only in the compact style.
    pub fields: Option<Vec<String>>,
    /// Colour the lines by ANSI escape sequences. Only in the compact style.
    pub color: bool,
}

impl From<Style> for TextOptions {
    fn from(style: Style) -> Self {
        Self { style, ..Self::default() }
    }
}

/// Writes items, one line each.
#[derive(Debug)]
pub struct TextWriter {
    clock: Clock,
    lines: Lines,
    line: Vec<u8>,
}

#[derive(Debug)]
enum Lines {
    Compact(Box<Compact>),
    Babeltrace(Babeltrace),
}

impl TextWriter {
    /// A writer that has seen no event.
    pub fn new(options: TextOptions) -> Self {
        let clock = Clock::new(&options);
        let lines = match options.style {
            Style::Compact => Lines::Compact(Box::new(Compact::new(options))),
            Style::Babeltrace => Lines::Babeltrace(Babeltrace::default()),
        };
        Self { clock, lines, line: Vec::new() }
    }

    /// Writes one item and a line feed, with one call.
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
        let (line, has_time) = (&mut self.line, event.stream.clock().is_some());
        match &mut self.lines {
            Lines::Compact(compact) => {
                if has_time {
                    compact.time(line, |line| self.clock.event(line, event.time_ns));
                }
                compact.event(line, event)
            }
            Lines::Babeltrace(babeltrace) => {
                if has_time {
                    line.push(b'[');
                    self.clock.event(line, event.time_ns);
                    line.extend_from_slice(b"] ");
                    babeltrace.distance(line, event.time_ns);
                }
                babeltrace.event(line, event)
            }
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        let line = &mut self.line;
        let (color, brackets) = match &self.lines {
            Lines::Compact(compact) => (compact.has_color(), false),
            Lines::Babeltrace(_) => (false, true),
        };
        if color {
            line.extend_from_slice(compact::RED);
        }
        if loss.stream.clock().is_some() {
            line.extend_from_slice(if brackets { b"[" } else { b"" });
            self.clock.write(line, loss.from_ns);
            line.extend_from_slice(b" to ");
            self.clock.write(line, loss.to_ns);
            line.extend_from_slice(if brackets { b"] " } else { b" " });
        }
        line.extend_from_slice(b"[lost: ");
        match loss.kind {
            LossKind::Events(Some(count)) => counted(line, count, "event")?,
            LossKind::Events(None) => line.extend_from_slice(b"perhaps events, their number is unknown"),
            LossKind::Renumbered { previous, number } => {
                write!(line, "perhaps packets: number {number} comes after {previous}")?;
            }
            LossKind::Packets { packets, events } => {
                match packets {
                    Some(count) => counted(line, count, "packet")?,
                    None => line.extend_from_slice(b"packets"),
                }
                if let Some(events) = events {
                    line.extend_from_slice(b" with ");
                    counted(line, events, "event")?;
                }
            }
        }
        line.extend_from_slice(b", in ");
        plain(line, &loss.stream.file.to_string_lossy());
        line.push(b']');
        if color {
            line.extend_from_slice(compact::PLAIN);
        }
        Ok(())
    }
}

/// Appends the text of a single event in the style of babeltrace2: its name and its values, without time, origin and packet, and without a
/// line feed.
pub fn write_event(out: &mut Vec<u8>, event: &Event) {
    // Writing to memory cannot fail.
    let _ = babeltrace::values(out, event, None);
}

fn counted(line: &mut Vec<u8>, count: u64, noun: &str) -> io::Result<()> {
    write!(line, "{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Text from the metadata without quotes. Control characters are shown as `\u{1b}`: a malicious trace must not control the terminal.
fn plain(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(escape_controls(text, &[]).as_bytes());
}
