//! A viewer of one live session.

use super::connection::Relay;
use super::options::LiveOptions;
use super::streams::{FetchResult, Stream};
use super::trace::Trace;
use super::{LiveError, LiveUrl};
use crate::clock_alignment::ClockAlignment;
use crate::item::Item;
use crate::loss::Damage;
use crate::merge::{IncrementalMerge, KnownCounters, PollResult};
use crate::metadata::Metadata;
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tracepoint_wire::live::{
    AttachStatus, Index, IndexStatus, NEW_METADATA, NEW_STREAM, NewStreamsStatus, Request, Seek, SessionCreated,
    SessionRecord, StreamRecord, Streams,
};

/// Maximum interval between requests for new streams.
const NEW_STREAMS: Duration = Duration::from_millis(500);
/// Maximum number of streams of a session.
const MAX_STREAMS: usize = 65_536;
/// How often a packet is requested again because the relay wants something else to be fetched first.
const MAX_FLAGS: u32 = 8;

/// A view of a live session: its events, losses and damage, merged by time as they arrive.
///
/// Memory is bounded by one packet of each stream, 256 MiB for a packet and 1 GiB for all of them, and by the metadata, 64 MiB for a trace.
#[derive(Debug)]
pub struct LiveView<S = TcpStream> {
    relay: Relay<S>,
    /// The ids of the attached sessions, which have the same name, and if each has ended.
    sessions: Vec<(u64, bool)>,
    traces: BTreeMap<u64, Trace>,
    streams: BTreeMap<u64, Stream>,
    merge: IncrementalMerge,
    damage: VecDeque<Damage>,
    /// Set if streams have to be requested, and the time of the last request.
    needs_streams: bool,
    asked: Option<Instant>,
    held: u64,
    metadata_wait: Duration,
}

impl LiveView<TcpStream> {
    /// Attaches a session.
    ///
    /// # Errors
    ///
    /// [`LiveError`] if the relay cannot be reached, or does not have the session.
    pub fn open(url: &LiveUrl, options: &LiveOptions) -> Result<Self, LiveError> {
        Self::attach(Relay::open(url, options)?, url, options)
    }
}

impl<S: Read + Write> LiveView<S> {
    /// Attaches a session over an existing connection. The socket must have a short read timeout.
    ///
    /// # Errors
    ///
    /// As [`open`](LiveView::open).
    pub fn over(socket: S, url: &LiveUrl, options: &LiveOptions) -> Result<Self, LiveError> {
        Self::attach(Relay::begin(socket, options)?, url, options)
    }

    fn attach(mut relay: Relay<S>, url: &LiveUrl, options: &LiveOptions) -> Result<Self, LiveError> {
        let Some((host, name)) = &url.session else {
            let reason = "it names a relay, and no session".to_owned();
            return Err(LiveError::Url { url: url.to_string(), reason });
        };
        let (merge, damage) = (IncrementalMerge::default(), VecDeque::new());
        let sessions = relay.sessions()?;
        let SessionCreated(true) = relay.ask(Request::CreateSession, |bytes| Ok(SessionCreated::decode(bytes)))? else {
            return Err(LiveError::Relay("it cannot create a session for a viewer"));
        };
        let named = |found: &&SessionRecord| (&found.hostname, &found.name) == (host, name);
        let ids: Vec<u64> = sessions.iter().filter(named).map(|found| found.id).collect();
        if ids.is_empty() {
            let shown = sessions.iter().map(|found| format!("{}/{}", found.hostname, found.name));
            let sessions = shown.map(|name| name.replace(char::is_control, "?")).collect();
            return Err(LiveError::NoSession { host: host.clone(), name: name.clone(), sessions });
        }
        let mut view = Self {
            relay,
            sessions: Vec::new(),
            traces: BTreeMap::new(),
            streams: BTreeMap::new(),
            merge,
            damage,
            needs_streams: true,
            asked: None,
            held: 0,
            metadata_wait: options.metadata_wait,
        };
        let seek = if options.from_beginning { Seek::Beginning } else { Seek::Last };
        for session in ids {
            let request = Request::Attach { session, offset: 0, seek };
            let Streams { status, streams } = view.relay.ask(request, Streams::<AttachStatus>::decode)?;
            if status != AttachStatus::Ok {
                return Err(LiveError::Attach { name: name.clone(), status });
            }
            view.sessions.push((session, false));
            view.announce(&streams)?;
        }
        Ok(view)
    }

    /// The next item, if one is available. Waits for replies of the relay, but not for events.
    ///
    /// # Errors
    ///
    /// [`LiveError`] if the view cannot continue. Events that arrived before are lost to this viewer, but not to the relay.
    pub fn poll(&mut self) -> Result<PollResult, LiveError> {
        loop {
            if let Some(damage) = self.damage.pop_front() {
                return Ok(PollResult::Item(Item::Damage(damage)));
            }
            let is_ready = self.streams.values().all(|stream| stream.is_merged);
            if let Some(item) = is_ready.then(|| self.merge.pop()).flatten() {
                return Ok(PollResult::Item(item));
            }
            if self.sessions.iter().all(|(_, ended)| *ended) && self.merge.is_empty() {
                self.give_up_unreadable(true);
                if self.damage.is_empty() {
                    return Ok(PollResult::Ended);
                }
                continue;
            }
            let has_gained = self.round()?;
            self.require_readable()?;
            let is_ready = self.streams.values().all(|stream| stream.is_merged);
            if let Some(item) = is_ready.then(|| self.merge.pop()).flatten() {
                return Ok(PollResult::Item(item));
            }
            if !has_gained && self.damage.is_empty() && !self.sessions.iter().all(|(_, ended)| *ended) {
                return Ok(PollResult::Wait);
            }
        }
    }

    /// The metadata of each trace whose clock was aligned with the collector's, and the alignment. Known from the first event of the trace on;
    /// LTTng's relays align no clock.
    pub fn alignments(&self) -> impl Iterator<Item = (&Metadata, ClockAlignment)> {
        self.traces.values().filter_map(|trace| Some((trace.metadata.as_ref()?, trace.alignment?)))
    }

    /// The metadata of each trace, and the alignment of its clock, if any.
    pub fn clocks(&self) -> impl Iterator<Item = (&Metadata, Option<ClockAlignment>)> {
        self.traces.values().filter_map(|trace| Some((trace.metadata.as_ref()?, trace.alignment)))
    }

    /// True if [`clocks`](Self::clocks) is final for the current traces, of which there is at least one: each had an event or a time from the relay,
    /// or the relay aligns no clock.
    pub fn knows_clocks(&self) -> bool {
        let is_known = |trace: &Trace| trace.metadata.is_some() && (trace.has_asked_clock || !self.relay.is_collector);
        !self.traces.is_empty() && self.traces.values().all(is_known)
    }

    /// Number of events that arrived after a later time had been returned. They were left out, so that time never goes backwards.
    pub fn late(&self) -> u64 {
        self.merge.late()
    }

    /// Number of packets so far without a checksum, although the tracer's packets have a place for it.
    pub fn unchecked(&self) -> u64 {
        self.merge.unchecked()
    }

    /// Detaches the sessions and closes the connection. Dropping the view also closes it.
    pub fn close(mut self) {
        for (session, ended) in self.sessions.clone() {
            // The relay also notices the end of the connection.
            let _ = if ended { Ok(()) } else { self.relay.tell(Request::Detach { session }) };
        }
    }

    /// Requests missing data. Returns true if a packet arrived, or a stream was added or has ended.
    fn round(&mut self) -> Result<bool, LiveError> {
        let mut has_gained = false;
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= NEW_STREAMS);
        if self.needs_streams || is_due || self.streams.is_empty() {
            has_gained |= self.fetch_streams()?;
        }
        has_gained |= self.fetch_metadata()?;
        let starving: Vec<u64> = self.merge.starving().collect();
        for stream in starving {
            has_gained |= self.next_packet(stream)?;
        }
        Ok(has_gained)
    }

    /// Requests new streams; returns true if there was one, or a session has ended.
    fn fetch_streams(&mut self) -> Result<bool, LiveError> {
        (self.needs_streams, self.asked) = (false, Some(Instant::now()));
        let mut has_gained = false;
        for index in 0..self.sessions.len() {
            let (session, ended) = self.sessions[index];
            if ended {
                continue;
            }
            let Streams { status, streams } =
                self.relay.ask(Request::NewStreams { session }, Streams::<NewStreamsStatus>::decode)?;
            match status {
                NewStreamsStatus::Ok => has_gained |= self.announce(&streams)?,
                NewStreamsStatus::Nothing => {}
                NewStreamsStatus::Error => return Err(LiveError::Relay("it cannot list the streams of the session")),
                // Streams with remaining data hang up one by one.
                NewStreamsStatus::Hup => {
                    self.sessions[index].1 = true;
                    has_gained = true;
                }
            }
        }
        Ok(has_gained)
    }

    /// Handles the announcements of streams; returns true if one is new.
    fn announce(&mut self, records: &[StreamRecord]) -> Result<bool, LiveError> {
        let mut has_gained = false;
        for record in records {
            let trace = self.traces.entry(record.trace).or_default();
            trace.announced.get_or_insert_with(Instant::now);
            if record.is_metadata {
                has_gained |= trace.metadata_stream.replace(record.id).is_none();
                (trace.is_stale, trace.has_ended) = (true, false);
            } else if let Entry::Vacant(new) = self.streams.entry(record.id) {
                new.insert(Stream::new(record));
                has_gained = true;
            }
            let size = self.streams.len().max(self.traces.len());
            if size > MAX_STREAMS {
                return Err(LiveError::TooMuch { what: "streams", size: size as u64, most: MAX_STREAMS as u64 });
            }
        }
        Ok(has_gained)
    }

    /// Fetches the metadata of traces that need it, and merges the streams that waited for it; returns true if there was one.
    fn fetch_metadata(&mut self) -> Result<bool, LiveError> {
        for trace in self.traces.values_mut().filter(|trace| trace.is_stale || trace.metadata.is_none()) {
            trace.fetch(&mut self.relay)?;
        }
        let mut has_gained = false;
        for (id, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.is_merged) {
            if let Some(metadata) = self.traces.get(&stream.trace).and_then(|trace| trace.metadata.as_ref()) {
                self.merge.add(*id, metadata, stream.name.clone(), KnownCounters::default());
                (stream.is_merged, has_gained) = (true, true);
            }
        }
        self.give_up_unreadable(false);
        Ok(has_gained)
    }

    /// Reports and ends the streams of traces whose metadata cannot be read, and such traces without a stream. `is_over`: no more metadata
    /// will arrive.
    fn give_up_unreadable(&mut self, is_over: bool) {
        let mut unreadable = Vec::new();
        for (id, trace) in &mut self.traces {
            let Some(reason) = trace.unreadable(is_over, self.metadata_wait) else { continue };
            let streams = self.streams.iter().filter(|(_, stream)| !stream.is_merged && stream.trace == *id);
            let streams: Vec<_> = streams.map(|(id, stream)| (*id, stream.name.clone())).collect();
            if streams.is_empty() && trace.reason.is_some() && !trace.is_unreadable {
                self.damage.push_back(Damage::new("metadata", 0, reason.clone()));
            }
            trace.is_unreadable |= !streams.is_empty() || trace.reason.is_some();
            for (stream, name) in streams {
                self.damage.push_back(Damage::new(name, 0, reason.clone()));
                unreadable.push(stream);
            }
        }
        for stream in unreadable {
            self.end(stream);
        }
    }

    /// Fails if the session is still running, but no trace of it can be read after the wait for metadata.
    fn require_readable(&self) -> Result<(), LiveError> {
        let has_waited =
            |trace: &Trace| trace.is_unreadable && !trace.has_ended && trace.has_waited(self.metadata_wait);
        let is_shown = !self.damage.is_empty() || !self.streams.is_empty() || !self.merge.is_empty();
        if is_shown || self.sessions.iter().all(|(_, ended)| *ended) || !self.traces.values().any(has_waited) {
            return Ok(());
        }
        if self.traces.values().any(|trace| !trace.is_unreadable) {
            return Ok(());
        }
        Err(LiveError::Metadata(self.metadata_wait))
    }

    /// Requests the next packet of a stream without an event; returns true if there was one, or the stream has ended.
    fn next_packet(&mut self, stream: u64) -> Result<bool, LiveError> {
        let index = self.relay.ask(Request::NextIndex { stream }, Index::decode)?;
        self.note_flags(stream, index.flags);
        if matches!(index.status, IndexStatus::Ok | IndexStatus::Inactive) {
            self.align(stream)?;
        }
        match index.status {
            IndexStatus::Ok => return self.packet(stream, &index),
            IndexStatus::Retry => {}
            IndexStatus::Inactive => {
                let trace = self.streams.get(&stream).and_then(|stream| self.traces.get(&stream.trace));
                if let Some(time) = trace.and_then(|trace| trace.nanoseconds(index.stream_class, index.end)) {
                    self.merge.quiet_until(stream, time);
                }
            }
            IndexStatus::Hup | IndexStatus::Eof => {
                self.end(stream);
                self.needs_streams |= self.streams.is_empty();
                return Ok(true);
            }
            IndexStatus::Error => return Err(LiveError::Relay("it cannot tell which packet is next")),
        }
        Ok(false)
    }

    /// Fetches a packet, and first whatever its flags require.
    fn packet(&mut self, id: u64, index: &Index) -> Result<bool, LiveError> {
        for _ in 0..MAX_FLAGS {
            if self.needs_streams {
                self.fetch_streams()?;
            }
            self.fetch_metadata()?;
            let Some(stream) = self.streams.get_mut(&id) else { return Ok(true) };
            match stream.fetch(&mut self.relay, id, index, &mut self.held)? {
                FetchResult::Packet(bytes) if bytes.is_empty() => return Ok(false),
                FetchResult::Packet(bytes) => {
                    let trace = self.traces.get(&stream.trace);
                    if let Some(metadata) = trace.and_then(|trace| trace.metadata.as_ref()) {
                        self.merge.feed(id, metadata, bytes);
                    }
                    return Ok(true);
                }
                FetchResult::Flags(flags) => self.note_flags(id, flags),
                FetchResult::Ended => {
                    self.end(id);
                    return Ok(true);
                }
            }
        }
        Err(LiveError::Relay("it never sends a packet that it has announced"))
    }

    /// Aligns the clock of a stream's trace once. If an earlier trace has the same clock, its alignment is used, so that times of both
    /// compare exactly.
    fn align(&mut self, stream: u64) -> Result<(), LiveError> {
        let Some(id) = self.streams.get(&stream).map(|stream| stream.trace) else { return Ok(()) };
        let clock = self.traces.get(&id).filter(|trace| !trace.has_asked_clock).and_then(Trace::clock);
        let of_same = |trace: &Trace| trace.alignment.filter(|_| clock.is_some() && trace.clock() == clock);
        let known = self.traces.values().find_map(of_same);
        let trace = self.traces.get_mut(&id);
        trace.map_or(Ok(()), |trace| trace.align(&mut self.relay, stream, known))
    }

    fn note_flags(&mut self, stream: u64, flags: u32) {
        self.needs_streams |= flags & NEW_STREAM != 0;
        let trace = self.streams.get(&stream).and_then(|stream| self.traces.get_mut(&stream.trace));
        if let Some(trace) = trace.filter(|_| flags & NEW_METADATA != 0) {
            trace.is_stale = true;
        }
    }

    fn end(&mut self, stream: u64) {
        if let Some(ended) = self.streams.remove(&stream) {
            ended.release(&mut self.held);
        }
        self.merge.end(stream);
    }
}
