//! Derives a trace's first and last time, and the position of its last events, from packet headers without reading events.

use std::sync::Arc;

use super::{Part, Trace};
use crate::decode::State;
use crate::directories::stream_files;
use crate::dt::DtTrace;
use crate::headers::Headers;
use crate::metadata::{Metadata, StreamClass};
use crate::packet::Packet;

/// The span of a packet, from its header. Times are in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: i64,
    end: i64,
    /// The number of its events, if known.
    events: u64,
}

impl Trace {
    /// The begin of the first packet and the end of the last one, in nanoseconds since the epoch; `None` without packets. Reads the header
    /// of each packet.
    pub fn range(&self) -> Option<(i64, i64)> {
        let spans = self.spans();
        let begin = spans.iter().map(|span| span.begin).min()?;
        let end = spans.iter().map(|span| span.end).max()?;
        Some((begin, end.max(begin)))
    }

    /// A time, in nanoseconds since the epoch, from which the trace has at least `events` events, and not many more, according to the headers
    /// of its packets. `None` if the headers do not say where the last events begin. Reads the header of each packet.
    pub fn tail(&self, events: u64) -> Option<i64> {
        let mut spans = self.spans();
        spans.sort_unstable_by_key(|span| span.begin);
        let mut found = 0u64;
        let enough = spans.iter().rev().find(|span| {
            found = found.saturating_add(span.events);
            found >= events
        });
        enough.map(|span| span.begin)
    }

    fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for part in &self.parts {
            match part {
                Part::Directory(directory) => {
                    for file in stream_files(&directory.path).unwrap_or_default() {
                        let headers = Headers::open(&directory.metadata, &file, 0, 0).into_iter().flatten();
                        add(&mut spans, &directory.metadata, headers.map(|packet| Header::of(&packet)));
                    }
                }
                Part::Dt(trace) => trace.streams().iter().for_each(|stream| add_dt(&mut spans, trace, stream)),
            }
        }
        spans
    }
}

/// The relevant part of a header.
struct Header {
    class: Arc<StreamClass>,
    begin: u64,
    end: Option<u64>,
    before: Option<u64>,
}

impl Header {
    fn of(packet: &Packet) -> Self {
        let (class, before) = (Arc::clone(&packet.class), packet.events_before);
        Self { class, begin: packet.begin.unwrap_or(0), end: packet.end, before }
    }
}

/// Adds the packets of a stream.
fn add(spans: &mut Vec<Span>, metadata: &Metadata, packets: impl Iterator<Item = Header>) {
    let mut before = None;
    for packet in packets {
        let count = before.zip(packet.before).map(|(before, now): (u64, u64)| now.saturating_sub(before));
        if let (Some(count), Some(last)) = (count, spans.last_mut()) {
            last.events = count;
        }
        before = packet.before;
        let begin = metadata.nanoseconds(&packet.class, packet.begin);
        let end = packet.end.map_or(begin, |end| metadata.nanoseconds(&packet.class, end));
        spans.push(Span { begin, end, events: 0 });
    }
}

fn add_dt(spans: &mut Vec<Span>, trace: &DtTrace, stream: &crate::dt::DtStream) {
    let parts = stream.parts.iter();
    let headers = parts.map(|part| Header {
        class: Arc::clone(&stream.class),
        begin: part.begin,
        end: None,
        before: part.before,
    });
    add(spans, trace.metadata(), headers);
    // Only the last packet shows its end.
    let mut next = stream.parts.len().saturating_sub(1);
    if let (Ok(Some(mut bytes)), Some(last)) = (trace.window(stream).next_packet(&mut next), spans.last_mut()) {
        let opened = Packet::open(&mut bytes, trace.metadata(), &mut State::new(trace.metadata().slots()), 0);
        let end = opened.ok().and_then(|packet| packet.end).unwrap_or(0);
        last.end = trace.metadata().nanoseconds(&stream.class, end).max(last.begin);
    }
}
