//! The collector's state machine: the sessions and streams of all senders. It has no sockets, and callers pass the time.
//!
//! ```text
//!   session:  Open ──sender gone──▶ Closing ──all streams closed──▶ Closed ──no viewer is attached──▶ (removed)
//!
//!   stream:   Open ──CLOSE_STREAM and its last packet, or the sender gone──▶ Closing ──files closed──▶ Closed
//!                    (indexes that wait for packets: until these arrive, at most LINGER)
//! ```

mod chunks;
mod clearing;
mod directory;
mod ending;
mod ordered;
mod place;
#[cfg(feature = "nats")]
pub(crate) mod position;
#[cfg(feature = "nats")]
mod publishing;
mod room;
mod session;
mod stream;
mod streamed;
mod streaming;
mod tally;

pub(crate) use chunks::Rotation;
pub(crate) use directory::{SessionDirectory, hexadecimal, session_name};
pub(crate) use place::Place;
pub(crate) use room::{FILES_OF_STREAM, Room};
pub(crate) use session::Session;
pub(crate) use stream::Stream;
pub(crate) use streaming::{OpenedSession, Refusal, refused};

use anyhow::{Context as _, bail};
use clearing::RemovalQueue;

use crate::counts::Counts;
use crate::memory::Memory;
use crate::pacing::Pacer;
use crate::storage::{JobResult, Packet, Storage};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::time::Instant;
use tracepoint_wire::relay::Index;

/// Maximum number of streams per session.
pub(crate) const MAX_STREAMS: usize = 65_536;
/// Maximum number of sessions.
pub(crate) const MAX_SESSIONS: usize = 8192;

/// All sessions and streams, and the resources that they share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) output: PathBuf,
    /// Maximum number of bytes of incomplete packets per session.
    pub(crate) share: u64,
    /// When sessions of tracepoint senders rotate to a new chunk.
    pub(crate) rotation: Rotation,
    /// Shares of addresses and senders in the limits.
    pub(crate) room: Room,
    pub(crate) memory: Memory,
    /// True if sessions of tracepoint senders are published to a broker.
    #[cfg(feature = "nats")]
    pub(crate) publishes: bool,
    pub(crate) storage: Storage,
    sessions: BTreeMap<u64, Session>,
    streams: HashMap<u64, Stream>,
    /// Session by the token that its data connections and datagrams carry.
    tokens: HashMap<[u8; 16], u64>,
    last_session: u64,
    last_stream: u64,
    last_trace: u64,
    pub(crate) counts: Counts,
    /// Reason why nothing can be written at present.
    pub(crate) full: Option<String>,
    pub(crate) pacing: Pacer,
    /// Bytes of old chunks that are queued for removal.
    leaving: u64,
    clearing: RemovalQueue,
    messages: Vec<String>,
}

impl Hub {
    pub(crate) fn new(output: PathBuf, storage: Storage) -> Self {
        Self {
            output,
            share: u64::MAX,
            rotation: Rotation::default(),
            room: Room::new(MAX_STREAMS * FILES_OF_STREAM),
            memory: Memory::new(usize::MAX),
            #[cfg(feature = "nats")]
            publishes: false,
            storage,
            sessions: BTreeMap::new(),
            streams: HashMap::new(),
            tokens: HashMap::new(),
            last_session: 0,
            last_stream: 0,
            last_trace: 0,
            counts: Counts::default(),
            full: None,
            pacing: Pacer::default(),
            leaving: 0,
            clearing: RemovalQueue::default(),
            messages: Vec::new(),
        }
    }

    /// Returns the sessions by number, including closed ones that viewers still read.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = (u64, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    pub(crate) fn session(&self, id: u64) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(crate) fn session_mut(&mut self, id: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    pub(crate) fn stream(&self, handle: u64) -> Option<&Stream> {
        self.streams.get(&handle)
    }

    /// Returns the stream if it belongs to the session.
    pub(crate) fn stream_of(&mut self, session: u64, handle: u64) -> Option<&mut Stream> {
        self.streams.get_mut(&handle).filter(|stream| stream.session == session)
    }

    /// Returns the reason why the sender of `session` must pause; `None` if it may send. `is_waiting` is true if the sender is paused already.
    pub(crate) fn hold(&mut self, session: u64, is_waiting: bool, now: Instant) -> Option<String> {
        let waits = self.pacing.waits(session, is_waiting, self.storage.work(), now);
        let slow = || "the disk of the collector is slower than its senders".to_owned();
        self.full.clone().or_else(|| waits.then(slow))
    }

    /// Queues a message to the user.
    pub(crate) fn say(&mut self, message: String) {
        // Senders cause messages; without a bound they could fill the memory between two reports.
        if self.messages.len() < 1000 {
            self.messages.push(message);
        }
    }

    /// Returns the messages queued since the last call.
    pub(crate) fn messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    pub(crate) fn open_session(&mut self, session: Session) -> u64 {
        self.last_session += 1;
        self.counts.sessions += 1;
        let directory = session.directory.as_ref().map(|it| format!(" in {}", it.borrow().relative()));
        let Session { name, host, .. } = &session;
        self.say(format!("{} `{name}` of {host} began{}", session.kind(), directory.unwrap_or_default()));
        #[cfg(feature = "nats")]
        if self.publishes && session.streamed.is_none() {
            let Session { name, host, .. } = &session;
            self.say(format!("`{name}` of {host} is stored, and not published: it comes from LTTng, whose packets --publish cannot name"));
        }
        self.sessions.insert(self.last_session, session);
        self.last_session
    }

    /// Adds a stream to its session and returns its handle, which is unique for the lifetime of the collector. `files` has passed the check of the
    /// sender's [share](Self::files).
    pub(crate) fn open_stream(&mut self, session: u64, place: Place, files: crate::storage::Files) -> Option<u64> {
        let trace = {
            let next = self.last_trace + 1;
            let trace = self.sessions.get_mut(&session)?.trace(&place.path, next);
            self.last_trace = self.last_trace.max(trace);
            trace
        };
        self.last_stream += 1;
        let handle = self.last_stream;
        let stream = Stream::new(session, trace, place, files, |job| self.storage.give(handle, job));
        self.streams.insert(handle, stream);
        self.sessions.get_mut(&session)?.streams.push(handle);
        Some(handle)
    }

    /// Returns the session of a stream that still accepts packets.
    pub(crate) fn session_that_takes(&self, handle: u64) -> Option<u64> {
        self.streams.get(&handle).filter(|stream| stream.takes_packets()).map(|stream| stream.session)
    }

    /// Handles a packet of a stock sender. Returns `false` if the stream does not exist or has ended.
    pub(crate) fn packet(&mut self, handle: u64, sequence: u64, packet: Packet, now: Instant) -> bool {
        let Some(stream) = self.streams.get_mut(&handle).filter(|stream| stream.takes_packets()) else { return false };
        self.counts.packets += 1;
        stream.pairing.packet(sequence, packet);
        self.advance(handle, now);
        true
    }

    /// Handles an index or a beacon. Returns `false` if the stream does not exist or has ended.
    pub(crate) fn index(&mut self, session: u64, index: Index, now: Instant) -> bool {
        let Some(stream) = self.stream_of(session, index.handle).filter(|stream| stream.takes_packets()) else {
            return false;
        };
        stream.pairing.index(index);
        self.advance(index.handle, now);
        true
    }

    /// Ends the stream after the packet with number `last`. Returns `false` if the stream does not exist.
    pub(crate) fn close_stream(&mut self, session: u64, handle: u64, last: u64, now: Instant) -> bool {
        let Some(stream) = self.stream_of(session, handle) else { return false };
        stream.close_behind(last);
        self.advance(handle, now);
        true
    }

    /// Announces all current streams of the session to viewers.
    pub(crate) fn publish(&mut self, session: u64) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        for handle in &session.streams {
            if let Some(stream) = self.streams.get_mut(handle) {
                stream.is_published = true;
            }
        }
        session.published = session.streams.len();
    }

    /// Continues the stream in another directory, starting with packet `from`.
    pub(crate) fn rotate(&mut self, handle: u64, from: u64, directory: PathBuf) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(&handle) else { return Ok(()) };
        stream.rotate(from, directory, |job| self.storage.give(handle, job))
    }

    /// Discards the metadata received so far; the sender sends all of it again.
    pub(crate) fn reset_metadata(&mut self, session: u64, handle: u64) -> anyhow::Result<()> {
        if self.sessions.get(&session).is_some_and(|session| !session.live_timer.is_zero()) {
            bail!("the metadata of a live session cannot be replaced");
        }
        let stream =
            self.streams.get_mut(&handle).filter(|stream| stream.session == session && stream.place.is_metadata());
        let stream = stream.with_context(|| format!("the session has no metadata stream {handle}"))?;
        stream.replace(|job| self.storage.give(handle, job)).context("cannot replace the metadata")
    }

    /// Hands complete packets, in order, to the storage.
    pub(crate) fn advance(&mut self, handle: u64, now: Instant) {
        if self.streams.get(&handle).is_none_or(|stream| self.is_rotating(stream.session)) {
            return;
        }
        let Some(stream) = self.streams.get_mut(&handle) else { return };
        if let Err(message) = stream.advance(now, |job| self.storage.give(handle, job)) {
            self.messages.push(format!("{message:#}"));
        }
        self.counts.late += std::mem::take(&mut stream.pairing.late);
        if let Some(ordered) = &mut stream.ordered {
            self.counts.late += std::mem::take(&mut ordered.reorder.late);
        }
        self.counts.missing += std::mem::take(&mut stream.pairing.missing);
    }

    /// Handles timeouts. To be called a few times per second.
    pub(crate) fn tick(&mut self, now: Instant) {
        let waiting: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| stream.pairing.is_waiting()).map(|(handle, _)| *handle).collect();
        for handle in waiting {
            self.advance(handle, now);
        }
        for id in self.sessions.keys().copied().collect::<Vec<_>>() {
            let detached = self.streamed(id).and_then(|streamed| streamed.detached);
            if detached.is_some_and(|since| now.saturating_duration_since(since) >= streaming::DETACHED_TIME) {
                self.close_session(id, now);
            }
            self.rotate_if_due(id, now);
            self.tidy(id, now);
        }
        self.remove_cleared(now);
        self.tell_refused(now);
        self.make_room(now);
    }

    /// Handles a result of the storage.
    pub(crate) fn done(&mut self, handle: u64, done: JobResult, now: Instant) {
        if let JobResult::Removed { bytes, is_gone, failed } = done {
            self.leaving -= bytes;
            let is_tried_again = self.cleared(handle, failed.is_none(), now).unwrap_or(!is_gone);
            if let Some(message) = failed {
                let again = if is_tried_again { "; it is tried again in a minute" } else { "" };
                self.say(format!("{message}{again}"));
            }
            self.chunk_removed(handle, is_gone, now);
            self.make_room(now);
            return;
        }
        if let JobResult::Full(full) = done {
            // While old chunks are being removed, the packet is only delayed. The storage reports `Full` again if the removal did not suffice.
            let makes_room = full.is_some() && self.make_room(now);
            match &full {
                Some(_) if makes_room => {}
                Some(why) => self.say(format!("cannot write: {why}; senders wait until there is room")),
                None if self.full.is_none() => {}
                None => self.say("what could not be written is written again".to_owned()),
            }
            self.full = full.filter(|_| !makes_room);
            return;
        }
        if done == JobResult::Closed {
            self.storage.closed(handle);
        }
        let Some(stream) = self.streams.get_mut(&handle) else { return };
        match done {
            JobResult::Packet { size: Some(_), .. } => self.counts.stored += 1,
            JobResult::Packet { size: None, .. } => self.counts.unwritten += 1,
            _ => {}
        }
        let bytes = stream.done(&done, now, |job| self.storage.give(handle, job));
        self.counts.stored_bytes += bytes;
        if let Some(streamed) = self.sessions.get_mut(&stream.session).and_then(|it| it.streamed.as_mut()) {
            streamed.stored(bytes);
        }
        let session = stream.session;
        match done {
            JobResult::Closed => self.tidy(session, now),
            JobResult::Marked => self.rotated(session, now),
            JobResult::Packet { .. } => {
                #[cfg(feature = "nats")]
                self.is_news(session);
                self.rotate_if_due(session, now);
            }
            _ => {}
        }
    }
}
