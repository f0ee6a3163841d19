//! One connection of a live viewer: its requests, and the answers to them. Has no socket.
//!
//! Each viewer has its own cursors, so several can read a session at the same time, and a slow one delays neither the others nor the sender. Streams
//! are announced as stock viewers require: a trace's metadata stream together with a data stream, and each stream once. An idle stream answers
//! `Inactive` with the time of its last beacon; an ended session answers `Hup` when everything is delivered. A [renewal](renewal) announces new
//! streams while all others are idle.

mod renewal;

use crate::hub::{Hub, Session};
use crate::metadata::{self, MetadataCursor};
use crate::view::{Cursor, CursorState};
use renewal::ViewedSession;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tracepoint_wire::live::{
    AttachStatus, ClockOffset, Connect, Index, IndexStatus, MAJOR, MetadataBytes, MetadataStatus, NEW_METADATA,
    NEW_STREAM, NewStreamsStatus, PacketBytes, PacketStatus, Request, Secret, Seek, SessionCreated, SessionDetached,
    SessionRecord, Sessions, StreamRecord, Streams,
};
use tracepoint_wire::stream::{Handshake, NO_BOUND, SharedKey, Side};

/// Maximum number of packet bytes per answer.
const LONGEST_READ: u32 = 1 << 20;
/// Maximum number of streams per announcement; the next one announces more.
const MAX_ANNOUNCED: usize = 256;

/// Reason for a refusal, for the collector's messages.
const NO_KEY: &str = "the viewer has no shared key; `--allow-stock-viewers` takes it all the same";

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The bytes of the reply.
    Reply(Vec<u8>),
    /// A reply with at most `length` bytes of this file; [`packet_reply`] encodes it.
    Read { file: Arc<File>, offset: u64, length: usize },
    /// Close the connection for this reason.
    Close(String),
    /// Close the connection for this reason after sending this reply, with a delay.
    Refuse(Vec<u8>, &'static str),
}

/// The state of a viewer's connection.
#[derive(Debug, Default)]
pub(crate) struct Viewer {
    is_connected: bool,
    /// The key that the viewer has yet to prove, and the nonce for the proof.
    key: Option<(SharedKey, [u8; 32])>,
    has_session: bool,
    /// The sessions it is attached to.
    attached: BTreeMap<u64, ViewedSession>,
    /// The streams announced to it, by the ids sent to it.
    streams: HashMap<u64, ViewedStream>,
    /// The metadata streams among them, by trace.
    metadata: HashMap<u64, u64>,
}

#[derive(Clone, Copy, Debug)]
struct ViewedStream {
    handle: u64,
    session: u64,
    trace: u64,
    place: Place,
    /// The latest time of this stream reported to the viewer.
    time: u64,
    /// Makes the times of idle streams distinct; stock viewers warn of equal ones.
    ordinal: u64,
    /// Packets that begin before this time can no longer be shown.
    floor: u64,
    /// The viewer has read the stream to its end.
    has_ended: bool,
    /// The viewer received a hang-up before the end.
    has_hung_up: bool,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Data(Cursor),
    Metadata(MetadataCursor),
}

impl Viewer {
    /// Creates a viewer that must prove the key; `nonce` is random.
    pub(crate) fn keyed(key: SharedKey, nonce: [u8; 32]) -> Self {
        Self { key: Some((key, nonce)), ..Self::default() }
    }

    /// Returns whether the viewer has connected, and has proved the key if one is required.
    pub(crate) const fn is_admitted(&self) -> bool {
        self.is_connected && self.key.is_none()
    }

    pub(crate) fn is_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    pub(crate) fn request(&mut self, hub: &mut Hub, request: Request, now: Instant) -> Answer {
        let mut out = Vec::new();
        match request {
            Request::Connect(connect) if connect.major == MAJOR => {
                self.is_connected = true;
                let asks = self.key.is_some();
                if asks { Connect::keyed() } else { Connect::collector() }.encode(&mut out);
            }
            Request::Connect(connect) => {
                return Answer::Close(format!(
                    "the viewer speaks version {}.{} of the live protocol",
                    connect.major, connect.minor
                ));
            }
            _ if !self.is_connected => return Answer::Close("the first request was not CONNECT".to_owned()),
            Request::Challenge if self.key.is_some() => {
                Secret(self.key.as_ref().map_or([0; 32], |(_, nonce)| *nonce)).encode(&mut out);
            }
            Request::Prove { nonce, code } if self.key.is_some() => {
                let Some((key, collector)) = self.key.take() else { return Answer::Close(NO_KEY.to_owned()) };
                let handshake = Handshake { session: [0; 16], sender: nonce, collector };
                if !key.verifies(Side::Viewer, &handshake, &code) {
                    Secret([0; 32]).encode(&mut out);
                    return Answer::Refuse(out, "the shared key of the viewer is not that of the collector");
                }
                Secret(key.code(Side::Viewed, &handshake)).encode(&mut out);
            }
            _ if self.key.is_some() => return Answer::Close(NO_KEY.to_owned()),
            Request::CreateSession => {
                self.has_session = true;
                SessionCreated(true).encode(&mut out);
            }
            Request::ListSessions => list(hub).encode(&mut out),
            Request::Attach { session, seek, .. } => self.attach(hub, session, seek, now).encode(&mut out),
            Request::NewStreams { session } => self.new_streams(hub, session).encode(&mut out),
            Request::NextIndex { stream } => self.next_index(hub, stream, now).encode(&mut out),
            Request::Metadata { stream } => match self.metadata(hub, stream) {
                Some(Ok(bytes)) if bytes.is_empty() => MetadataBytes::only(MetadataStatus::Nothing).encode(&mut out),
                Some(Ok(bytes)) => MetadataBytes { status: MetadataStatus::Ok, bytes: &bytes }.encode(&mut out),
                Some(Err(_)) | None => MetadataBytes::only(MetadataStatus::Error).encode(&mut out),
            },
            Request::Packet { stream, offset, length } => {
                let viewed = self.streams.get(&stream);
                let view = viewed.and_then(|viewed| hub.stream(viewed.handle)).map(|stream| &stream.view);
                return match view.and_then(|view| view.place(offset)) {
                    Some((file, offset)) => Answer::Read { file, offset, length: length.min(LONGEST_READ) as usize },
                    None => Answer::Reply(packet_reply(&Err(io::ErrorKind::NotFound.into()))),
                };
            }
            Request::Clock { stream } => self.clock(hub, stream).encode(&mut out),
            Request::Detach { session } => SessionDetached(self.detach(hub, session, now)).encode(&mut out),
            _ => return Answer::Close("the request is not known".to_owned()),
        }
        Answer::Reply(out)
    }

    fn attach(&mut self, hub: &mut Hub, id: u64, seek: Seek, now: Instant) -> Streams<AttachStatus> {
        let status = match hub.session(id) {
            _ if !self.has_session => AttachStatus::NoSession,
            None => AttachStatus::Unknown,
            Some(session) if session.live_timer.is_zero() => AttachStatus::NotLive,
            Some(_) => AttachStatus::Ok,
        };
        if status != AttachStatus::Ok {
            return Streams::none(status);
        }
        self.attached.entry(id).or_insert_with(|| {
            hub.viewer(id, true, now);
            ViewedSession::default()
        });
        Streams { status, streams: self.announce(hub, id, seek == Seek::Beginning) }
    }

    /// Detaches the viewer from a session; returns whether it was attached.
    fn detach(&mut self, hub: &mut Hub, id: u64, now: Instant) -> bool {
        let was_attached = self.attached.remove(&id).is_some();
        if was_attached {
            self.streams.retain(|_, viewed| viewed.session != id);
            self.metadata.retain(|_, metadata| self.streams.contains_key(metadata));
            hub.viewer(id, false, now);
        }
        was_attached
    }

    pub(crate) fn ended(&mut self, hub: &mut Hub, now: Instant) {
        while let Some(id) = self.attached.first_key_value().map(|(id, _)| *id) {
            self.detach(hub, id, now);
        }
    }

    /// Announces streams that are new to the viewer, starting at their first packets or at the present end.
    fn announce(&mut self, hub: &Hub, id: u64, from_begin: bool) -> Vec<StreamRecord> {
        let fresh = self.fresh(hub, id);
        let attached = self.attached.entry(id).or_default();
        attached.announced(fresh.len() < MAX_ANNOUNCED - 1, hub.session(id).map_or(0, |session| session.published));
        let record = |handle: &u64| {
            let stream = hub.stream(*handle)?;
            let is_metadata = stream.place.is_metadata();
            let (known, floor) = (attached.take_place(*handle), attached.floor);
            let (place, floor) = match known {
                _ if is_metadata => (Place::Metadata(MetadataCursor::default()), 0),
                Some(cursor) => (Place::Data(cursor), 0),
                None if from_begin => (Place::Data(stream.view.begin()), floor),
                None => (Place::Data(stream.view.end()), floor),
            };
            let [key, trace] = [*handle, stream.trace].map(|number| attached.id(number));
            let (ordinal, time) = (self.streams.len() as u64, attached.floor);
            let viewed = ViewedStream {
                handle: *handle,
                session: id,
                trace,
                place,
                time,
                ordinal,
                floor,
                has_ended: false,
                has_hung_up: false,
            };
            self.streams.insert(key, viewed);
            if is_metadata {
                self.metadata.insert(trace, key);
            }
            Some(StreamRecord {
                id: key,
                trace,
                is_metadata,
                path: stream.place.path.to_string_lossy().into_owned(),
                channel: stream.place.channel.clone(),
            })
        };
        fresh.iter().filter_map(record).collect()
    }

    fn new_streams(&mut self, hub: &Hub, id: u64) -> Streams<NewStreamsStatus> {
        let Some(session) = hub.session(id).filter(|_| self.attached.contains_key(&id)) else {
            return Streams::none(NewStreamsStatus::Error);
        };
        if self.is_renewing(id) && !self.renew(id) {
            return Streams::none(NewStreamsStatus::Nothing);
        }
        let streams = self.announce(hub, id, true);
        let all_ended =
            || self.streams.values().filter(|viewed| viewed.session == id).all(ViewedStream::has_nothing_more);
        if streams.is_empty() && session.is_closed() && all_ended() {
            return Streams::none(NewStreamsStatus::Hup);
        }
        Streams { status: NewStreamsStatus::Ok, streams }
    }

    fn next_index(&mut self, hub: &Hub, id: u64, now: Instant) -> Index {
        let error = Index::only(IndexStatus::Error);
        let Some(mut viewed) = self.streams.get(&id).copied() else { return error };
        let Some(stream) = hub.stream(viewed.handle) else { return error };
        let Place::Data(cursor) = &mut viewed.place else { return error };
        if self.is_renewing(viewed.session) {
            self.hang_up(id);
            return Index::only(IndexStatus::Hup);
        }
        let next = loop {
            match stream.view.next(cursor, now) {
                Ok(CursorState::Packet { index, .. }) if index.begin < viewed.floor => {}
                next => break next,
            }
        };
        let is_idle = matches!(next, Ok(CursorState::Nothing | CursorState::Inactive { .. }));
        let waits = is_idle && !self.fresh(hub, viewed.session).is_empty();
        if self.attached.get_mut(&viewed.session).is_some_and(|attached| attached.waits(waits, now)) {
            self.hang_up(id);
            return Index::only(IndexStatus::Hup);
        }
        let index = match next {
            Err(_) => error,
            Ok(CursorState::Nothing) => Index::only(IndexStatus::Retry),
            // Streams yet to be announced may begin before the last beacon.
            Ok(CursorState::Inactive { .. }) if waits => Index::only(IndexStatus::Retry),
            Ok(CursorState::End) => {
                viewed.has_ended = true;
                Index::only(IndexStatus::Hup)
            }
            Ok(CursorState::Inactive { time, stream_class }) => {
                // An earlier time is always safe; a reported time is never taken back.
                viewed.time = viewed.time.max(time.saturating_sub(viewed.ordinal));
                Index::inactive(viewed.time, stream_class)
            }
            Ok(CursorState::Packet { offset, index }) => {
                viewed.time = viewed.time.max(index.end);
                Index {
                    offset,
                    packet_bits: index.packet_size,
                    content_bits: index.content_size,
                    begin: index.begin,
                    end: index.end,
                    discarded: index.discarded,
                    stream_class: index.stream_class,
                    status: IndexStatus::Ok,
                    flags: self.flags(hub, &viewed),
                }
            }
        };
        self.streams.insert(id, viewed);
        index
    }

    /// Returns flags for requests that the viewer must make before it reads a packet of this stream.
    fn flags(&self, hub: &Hub, viewed: &ViewedStream) -> u32 {
        let metadata = self.metadata.get(&viewed.trace);
        let metadata = metadata.and_then(|id| self.streams.get(id));
        let metadata = metadata.and_then(|viewed| Some((hub.stream(viewed.handle)?, viewed.place)));
        let has_metadata = match metadata {
            Some((stream, Place::Metadata(cursor))) => metadata::has_more(&stream.view, &cursor),
            _ => false,
        };
        let has_streams = !self.fresh(hub, viewed.session).is_empty();
        (if has_metadata { NEW_METADATA } else { 0 }) | (if has_streams { NEW_STREAM } else { 0 })
    }

    /// Returns streams that can be announced and are not yet: published ones of traces with both metadata and data.
    fn fresh(&self, hub: &Hub, id: u64) -> Vec<u64> {
        let Some(session) = hub.session(id) else { return Vec::new() };
        let Some(attached) = self.attached.get(&id).filter(|attached| !attached.knows_all(session.published)) else {
            return Vec::new();
        };
        let published = session.streams.iter().filter_map(|handle| Some((*handle, hub.stream(*handle)?)));
        let published: Vec<_> =
            published.filter(|(handle, stream)| stream.is_published && !attached.has_passed(*handle)).collect();
        let of = |is_metadata: bool| -> HashSet<u64> {
            let streams = published.iter().filter(|(_, stream)| stream.place.is_metadata() == is_metadata);
            streams.map(|(_, stream)| stream.trace).collect()
        };
        let (with_metadata, with_data) = (of(true), of(false));
        let is_complete = |trace| with_metadata.contains(&trace) && with_data.contains(&trace);
        let unknown = published.iter().filter(|(handle, _)| !self.streams.contains_key(&attached.id(*handle)));
        let mut fresh: Vec<_> = unknown.filter(|(_, stream)| is_complete(stream.trace)).collect();
        // The metadata of a trace, then its other streams; never metadata without a data stream.
        fresh.sort_by_key(|(_, stream)| (stream.trace, !stream.place.is_metadata()));
        fresh.truncate(MAX_ANNOUNCED);
        if fresh.len() == MAX_ANNOUNCED && fresh.last().is_some_and(|(_, stream)| stream.place.is_metadata()) {
            fresh.pop();
        }
        fresh.into_iter().map(|(handle, _)| *handle).collect()
    }

    /// Returns the clock alignment of the trace that this stream belongs to.
    fn clock(&self, hub: &mut Hub, id: u64) -> ClockOffset {
        let streamed = self.streams.get(&id).and_then(|viewed| hub.streamed(viewed.session));
        let (offset, bound) = streamed.and_then(|streamed| streamed.alignment).unwrap_or((0, NO_BOUND));
        ClockOffset { offset, bound }
    }

    fn metadata(&mut self, hub: &Hub, id: u64) -> Option<io::Result<Vec<u8>>> {
        let viewed = self.streams.get_mut(&id)?;
        let Place::Metadata(cursor) = &mut viewed.place else { return None };
        let streamed = hub.session(viewed.session).and_then(|session| session.streamed.as_ref());
        let uuid = streamed.map_or([0; 16], |streamed| streamed.trace);
        Some(metadata::read(&hub.stream(viewed.handle)?.view, uuid, cursor))
    }
}

impl ViewedStream {
    fn has_nothing_more(&self) -> bool {
        self.has_ended || matches!(self.place, Place::Metadata(_))
    }
}

/// Encodes the reply with the bytes read. Stock viewers do not accept an empty one.
pub(crate) fn packet_reply(read: &io::Result<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    match read {
        Ok(bytes) if !bytes.is_empty() => PacketBytes { status: PacketStatus::Ok, flags: 0, bytes }.encode(&mut out),
        _ => PacketBytes::only(PacketStatus::Error, 0).encode(&mut out),
    }
    out
}

fn list(hub: &Hub) -> Sessions {
    let open = hub.sessions().filter(|(_, session)| session.is_open());
    Sessions(open.map(|(id, session)| record(id, session)).collect())
}

fn record(id: u64, session: &Session) -> SessionRecord {
    SessionRecord {
        id,
        live_timer_us: u32::try_from(session.live_timer.as_micros()).unwrap_or(u32::MAX),
        clients: session.viewers as u32,
        streams: session.streams.len() as u32,
        hostname: session.host.clone(),
        name: session.name.clone(),
    }
}
