//! Text: a line for each event, in the shape of babeltrace2's.

mod lines;
mod order;
mod settled;

use crate::account::Account;
use crate::ctf::MetadataText;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use lines::Lines;
use order::{Entry, Order};
use settled::{KEPT, KEPT_OUTSIDE, Settled};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tracepoint_core::channel::{Packet, Policy, StreamId};
use tracepoint_reader::text::TextOptions;
use tracepoint_reader::{Event, Metadata, PacketDecoder};

/// How many bytes of events may wait for their turn, unless told otherwise.
const PENDING: usize = 64 << 20;
/// What a decoded event takes in memory, by estimate: the values in their vectors, names shared.
const EVENT_COST: usize = 400;
/// By how much the decoded bytes of a record are larger than the record.
const DECODED_FACTOR: usize = 4;

/// Writes events as lines of text, ordered by time.
///
/// The streams of a trace come packet by packet, one stream far ahead of another, so that events wait: for one to two seconds, until no stream
/// has older ones; three of another process. Where there are flight recorders, which hand over nothing before the end, or another clock than
/// the system's, that is until the trace ends. Where those that wait need more than 64 MiB (see [`TextSink::pending`]) the oldest are written
/// before. An event that turns up behind a later one that is written already is written all the same: its line shows a negative distance from
/// the line before, and a line at the end says how many such events there are. Losses are lines among the events.
pub struct TextSink<W> {
    lines: Lines<W>,
    order: Order,
    /// `None` where some streams come at the end alone.
    settled: Option<Settled>,
    pending: usize,
    metadata_text: String,
    metadata: Option<Metadata>,
    streams: HashMap<StreamId, Seen>,
}

/// What the last packet of a stream said.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
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

impl<W: Write + Send> TextSink<W> {
    /// A sink that writes to `out`, times in the local time zone. It buffers by itself.
    pub fn new(out: W) -> Self {
        Self {
            lines: Lines::new(out, TextOptions::default()),
            order: Order::default(),
            settled: None,
            pending: PENDING,
            metadata_text: String::new(),
            metadata: None,
            streams: HashMap::new(),
        }
    }

    /// How the lines look: see [`TextOptions`]. Called before the sink is used.
    #[must_use]
    pub fn options(mut self, options: TextOptions) -> Self {
        self.lines = self.lines.with(options);
        self
    }

    /// How many bytes of memory, by estimate, events may take while they wait for earlier ones: 64 MiB unless told otherwise.
    #[must_use]
    pub const fn pending(mut self, bytes: usize) -> Self {
        self.pending = bytes;
        self
    }

    fn metadata(&mut self, text: &str) -> Result<(), SinkError> {
        self.metadata_text.push_str(text);
        let metadata =
            Metadata::parse(self.metadata_text.as_bytes()).map_err(|error| failed(io::Error::other(error)))?;
        self.metadata = Some(metadata);
        Ok(())
    }

    /// Writes the oldest entries until those that wait take no more than `limit` bytes.
    fn shrink(&mut self, limit: usize) -> Result<(), SinkError> {
        while self.order.cost() > limit {
            let Some(entry) = self.order.pop() else { break };
            self.lines.add(entry).map_err(failed)?;
        }
        self.lines.flush().map_err(failed)
    }
}

impl<W: Write + Send> Sink for TextSink<W> {
    fn name(&self) -> String {
        "text".to_owned()
    }

    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.settled = settled(trace, channels, KEPT);
        self.metadata(MetadataText::begin(trace, channels).as_str())
    }

    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.metadata(MetadataText::events(events).as_str())
    }

    fn add_channel(&mut self, trace: &TraceInfo, channel: &ChannelDescription) -> Result<(), SinkError> {
        self.metadata(MetadataText::further_channel(trace, channel).as_str())
    }

    fn begin_with_text(
        &mut self,
        trace: &TraceInfo,
        channels: &[ChannelDescription],
        text: &str,
    ) -> Result<(), SinkError> {
        self.settled = settled(trace, channels, KEPT_OUTSIDE);
        self.metadata(text)
    }

    fn describe_with_text(&mut self, _: &[EventDescription], text: &str) -> Result<(), SinkError> {
        self.metadata(text)
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        // Room first: as long as the output takes nothing, no further packet is taken.
        if self.order.cost() > self.pending || !self.lines.is_empty() {
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

        // What was recorded before the first packet of a stream is no loss: the sink was added later.
        let first = Seen { discarded, records: packet.events_before, end };
        let seen = self.streams.entry(stream.id).or_insert(first);
        let name = format!("{}_{}", stream.channel, stream.id.instance);
        let mut lost = |count: u64, what: &str| {
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                let line = format!("[lost: {count} {what}event{plural}, in {name}]\n");
                self.order.push(seen.end, line.len() + EVENT_COST, Entry::Note(line));
            }
        };
        lost(packet.events_before.saturating_sub(seen.records), "overwritten ");
        lost(discarded.saturating_sub(seen.discarded), "");
        *seen = Seen { discarded, records: packet.events_after, end };

        let cost = EVENT_COST + DECODED_FACTOR * packet.bytes.len() / events.len().max(1);
        for event in events {
            if let Some(settled) = &mut self.settled {
                settled.saw(event.time_ns);
            }
            self.order.push(event.time_ns, cost, Entry::Event(event));
        }
        Ok(())
    }

    fn look_ended(&mut self) {
        let Some(until) = self.settled.as_mut().map(|settled| settled.look_ended(Instant::now())) else { return };
        let mut written = self.lines.flush();
        while let (Ok(()), Some(entry)) = (&written, self.order.pop_until(until)) {
            written = self.lines.add(entry);
        }
        // What the output does not take is tried again; as long as it stays with the lines, no packet is taken.
        let _ = written.and_then(|()| self.lines.finish());
    }

    fn finish(&mut self, _: &Account) -> Result<(), SinkError> {
        let result = self.shrink(0).and_then(|()| {
            let late = self.order.late();
            if late > 0 {
                let line = format!("[late: {late} events came after later ones]\n");
                self.lines.add(Entry::Note(line)).map_err(failed)?;
            }
            self.lines.finish().map_err(failed)
        });
        result.map_err(|error| {
            let missing = self.order.len() + self.lines.unwritten();
            SinkError::new(format!("write text, whose last {missing} lines are missing"), copy(error.io_error()))
        })
    }
}

/// What tells which events are in order while such a trace is recorded; `None` if that is known at its end alone.
fn settled(trace: &TraceInfo, channels: &[ChannelDescription], kept: Duration) -> Option<Settled> {
    let comes_late = |channel: &ChannelDescription| channel.policy == Policy::Overwrite;
    // Where another clock counts, nobody knows how long a packet has been open.
    let comes_soon = trace.clock.uuid.is_some() && !channels.iter().any(comes_late);
    comes_soon.then(|| Settled::new(kept))
}

fn failed(error: io::Error) -> SinkError {
    SinkError::new("write text", error)
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}
