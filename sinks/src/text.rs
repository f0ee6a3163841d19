//! Text output: one line per event, in the styles of the reader.

mod file;
mod lines;
mod reorder;

pub use file::TextFile;

use crate::account::Account;
use crate::description::{ChannelDescription, NewEvents, TraceStart};
use crate::error::SinkError;
use crate::sink::{Sink, SinkExtension, StreamInfo};
use lines::Lines;
use reorder::{Entry, ReorderBuffer};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Stderr, Stdout, Write};
use std::path::Path;
use std::time::Instant;
use tracepoint_reader::internal::Watermark;
use tracepoint_reader::text::TextOptions;
use tracepoint_reader::time_namespace::is_own_clock;
use tracepoint_reader::{Event, Metadata, PacketDecoder};
use tracepoint_ring::channel::{Packet, Policy, StreamId};

/// Default limit for events that wait to be written in order, in bytes.
const PENDING: usize = 64 << 20;
/// Estimated memory of a decoded event: the values in their vectors; names are shared.
const EVENT_COST: usize = 400;
/// Estimated ratio of a decoded record's memory to its bytes.
const DECODED_FACTOR: usize = 4;

/// Writes events as lines of text, ordered by time.
///
/// The packets of one stream may arrive long before those of another. So events wait until no stream can have older ones: one to two seconds, or
/// three for events of another process. If a channel is a flight recorder, which provides no packets before the end, or if the clock is not the
/// system's, they wait until the trace ends. If the waiting events need more than 64 MiB (see [`TextSink::pending`]), the oldest are written earlier.
/// An event that arrives after a later one was written is written late; the last line of the output counts such events. Losses are written as lines
/// between the events.
pub struct TextSink<W> {
    lines: Lines<W>,
    waiting: ReorderBuffer,
    /// `None` if some streams arrive only at the end.
    watermark: Option<Watermark>,
    pending: usize,
    metadata_text: String,
    metadata: Option<Metadata>,
    streams: HashMap<StreamId, StreamState>,
}

/// The state of a stream after its last packet.
#[derive(Clone, Copy, Debug, Default)]
struct StreamState {
    discarded: u64,
    records: u64,
    /// The end of the packet, in ns since the epoch.
    end: i64,
}

impl<W> fmt::Debug for TextSink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextSink")
            .field("pending", &self.pending)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl TextSink<Stderr> {
    /// Creates a sink that writes to standard error.
    pub fn stderr() -> Self {
        Self::new(io::stderr())
    }
}

impl TextSink<Stdout> {
    /// Creates a sink that writes to standard output.
    pub fn stdout() -> Self {
        Self::new(io::stdout())
    }
}

impl TextSink<TextFile> {
    /// Creates a sink that writes into a new file at `path`.
    ///
    /// # Errors
    ///
    /// If a file of that name exists, or cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, SinkError> {
        let path = path.as_ref();
        let made = TextFile::create(path).map(Self::new);
        made.map_err(|error| SinkError::new(format!("make {}", path.display()), error))
    }
}

impl<W: Write + Send> TextSink<W> {
    /// Creates a sink that writes to `out`, with times in the local time zone. It buffers its output.
    pub fn new(out: W) -> Self {
        Self {
            lines: Lines::new(out, TextOptions::default()),
            waiting: ReorderBuffer::default(),
            watermark: None,
            pending: PENDING,
            metadata_text: String::new(),
            metadata: None,
            streams: HashMap::new(),
        }
    }

    /// Sets the format of the lines: see [`TextOptions`]. To be called before the sink is used.
    #[must_use]
    pub fn options(mut self, options: TextOptions) -> Self {
        self.lines = self.lines.with(options);
        self
    }

    /// Limits the estimated memory of events that wait for earlier ones. The default is 64 MiB.
    #[must_use]
    pub const fn pending(mut self, bytes: usize) -> Self {
        self.pending = bytes;
        self
    }

    fn add_metadata(&mut self, text: &str) -> Result<(), SinkError> {
        self.metadata_text.push_str(text);
        let metadata =
            Metadata::parse(self.metadata_text.as_bytes()).map_err(|error| failed(io::Error::other(error)))?;
        self.metadata = Some(metadata);
        Ok(())
    }

    /// Writes the oldest entries until the waiting ones need at most `limit` bytes.
    fn shrink(&mut self, limit: usize) -> Result<(), SinkError> {
        while self.waiting.cost() > limit {
            let Some(entry) = self.waiting.pop() else { break };
            self.lines.add(entry).map_err(failed)?;
        }
        self.lines.flush().map_err(failed)
    }
}

impl<W: Write + Send> Sink for TextSink<W> {
    fn name(&self) -> String {
        "text".to_owned()
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        // Flight recorders provide no packets before the end, and the age of a packet is unknown with another clock than the system's.
        let is_recorder = |channel: &ChannelDescription| channel.policy == Policy::Overwrite;
        let has_watermark = start.trace.clock.uuid.is_some_and(is_own_clock) && !start.channels.iter().any(is_recorder);
        self.watermark = has_watermark.then(|| Watermark::new(start.packet_delay));
        self.add_metadata(start.metadata)
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        self.add_metadata(new.metadata)
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        // Writes first: while the output accepts nothing, no further packet is taken.
        if self.waiting.cost() > self.pending || !self.lines.is_empty() {
            self.shrink(self.pending)?;
        }
        let Some(metadata) = &self.metadata else {
            return Err(failed(io::Error::other("a packet came before the trace began")));
        };
        let bad = |damage| failed(io::Error::new(io::ErrorKind::InvalidData, damage));
        let decoder = PacketDecoder::new(metadata, packet.bytes).map_err(bad)?;
        let end = decoder.stream().nanoseconds(decoder.packet().end.unwrap_or(0));
        let discarded = decoder.packet().discarded.unwrap_or(0);
        let events: Vec<Event> = decoder.collect::<Result<_, _>>().map_err(bad)?;

        // Records before the first packet of a stream are not lost: the sink was added later.
        let first = StreamState { discarded, records: packet.events_before, end };
        let seen = self.streams.entry(stream.id).or_insert(first);
        let name = format!("{}_{}", stream.channel, stream.id.instance);
        let mut lost = |count: u64, what: &str| {
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                let line = format!("[lost: {count} {what}event{plural}, in {name}]\n");
                self.waiting.push(seen.end, line.len() + EVENT_COST, Entry::Note(line));
            }
        };
        lost(packet.events_before.saturating_sub(seen.records), "overwritten ");
        lost(discarded.saturating_sub(seen.discarded), "");
        *seen = StreamState { discarded, records: packet.events_after, end };

        let cost = EVENT_COST + DECODED_FACTOR * packet.bytes.len() / events.len().max(1);
        if let (Some(watermark), Some(newest)) = (&mut self.watermark, events.iter().map(|event| event.time_ns).max()) {
            watermark.observe(newest);
        }
        let entries = events.into_iter().map(|event| (event.time_ns, Entry::Event(event)));
        self.waiting.push_all(entries.collect(), cost);
        Ok(())
    }

    fn finish(&mut self, _: &Account) -> Result<(), SinkError> {
        let result = self.shrink(0).and_then(|()| {
            let late = self.waiting.late();
            if late > 0 {
                let line = format!("[late: {late} events came after later ones]\n");
                self.lines.add(Entry::Note(line)).map_err(failed)?;
            }
            self.lines.finish().map_err(failed)
        });
        result.map_err(|error| {
            let missing = self.waiting.len() + self.lines.unwritten();
            SinkError::new(format!("write text, whose last {missing} lines are missing"), copy(error.io_error()))
        })
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl<W: Write + Send> SinkExtension for TextSink<W> {
    fn round_ended(&mut self, _: Option<u64>) {
        let Some(until) = self.watermark.as_mut().map(|watermark| watermark.advance(Instant::now())) else { return };
        let mut written = self.lines.flush();
        while let (Ok(()), Some(entry)) = (&written, self.waiting.pop_until(until)) {
            written = self.lines.add(entry);
        }
        // Lines that the output does not accept are written again in the next round; until then no packet is taken.
        let _ = written.and_then(|()| self.lines.finish());
    }
}

fn failed(error: io::Error) -> SinkError {
    SinkError::new("write text", error)
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}
