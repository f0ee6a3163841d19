//! Replies that are lists: of sessions, and of streams.

use super::Status;
use crate::bytes::{Fields, put_text};
use crate::{Decoded, Malformed};

/// The most sessions that a list may have.
const MOST_SESSIONS: u32 = 65_536;
/// The most streams that one reply may announce.
const MOST_STREAMS: u32 = 16_384;
/// The size of a session in a list.
const SESSION_SIZE: usize = 339;
/// The size of the announcement of a stream.
const STREAM_SIZE: usize = 4371;
/// Sizes of fields, in bytes, the NUL at their end included.
const HOSTNAME: usize = 64;
const NAME: usize = 255;
const PATH: usize = 4096;

/// A session of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id, with which it is attached.
    pub id: u64,
    /// The period of its live timer, in microseconds; 0 if it is not live.
    pub live_timer_us: u32,
    /// How many viewers are attached.
    pub clients: u32,
    /// How many streams it has; stock relays count the metadata.
    pub streams: u32,
    /// The traced host. At most 63 bytes are sent.
    pub hostname: String,
    /// Its name. At most 254 bytes are sent.
    pub name: String,
}

/// The sessions of a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sessions(pub Vec<SessionRecord>);

/// The announcement of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRecord {
    /// Its id, unique in the relay.
    pub id: u64,
    /// The trace that it belongs to: the same number for all streams, and the metadata, of one trace.
    pub trace: u64,
    /// Whether it carries the metadata of the trace.
    pub is_metadata: bool,
    /// Where the relay stores it; informative. At most 4095 bytes are sent.
    pub path: String,
    /// The name of the channel; informative. At most 254 bytes are sent.
    pub channel: String,
}

/// Announced streams. Only a status of success is followed by any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams<S> {
    /// How the request ended.
    pub status: S,
    /// The streams.
    pub streams: Vec<StreamRecord>,
}

/// The size of a list with a head of `head` bytes, whose last four are the number of records.
fn list_size(bytes: &[u8], head: usize, record: usize, most: u32, what: &'static str) -> Result<usize, Malformed> {
    match Fields::of(bytes, head).map(|fields| fields.u32(head - 4)) {
        None => Ok(head),
        Some(count) if count > most => Err(Malformed::TooMany { what, count: count.into(), most: most.into() }),
        Some(count) => Ok(head + count as usize * record),
    }
}

impl Sessions {
    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.0.len() as u32).to_be_bytes());
        for session in &self.0 {
            out.extend_from_slice(&session.id.to_be_bytes());
            for word in [session.live_timer_us, session.clients, session.streams] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            put_text(out, &session.hostname, HOSTNAME);
            put_text(out, &session.name, NAME);
        }
    }

    /// Decodes a reply.
    ///
    /// # Errors
    ///
    /// [`Malformed::TooMany`] for more than 65,536 sessions.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, Malformed> {
        let size = list_size(bytes, 4, SESSION_SIZE, MOST_SESSIONS, "sessions")?;
        let Some(Fields(whole)) = Fields::of(bytes, size) else {
            return Ok(Decoded::Needs(size));
        };
        let sessions = whole[4..].chunks_exact(SESSION_SIZE).map(|record| {
            let fields = Fields(record);
            SessionRecord {
                id: fields.u64(0),
                live_timer_us: fields.u32(8),
                clients: fields.u32(12),
                streams: fields.u32(16),
                hostname: fields.text(20, HOSTNAME),
                name: fields.text(84, NAME),
            }
        });
        Ok(Decoded::Whole(Self(sessions.collect()), size))
    }
}

impl<S: Status> Streams<S> {
    /// A reply without streams.
    pub const fn none(status: S) -> Self {
        Self { status, streams: Vec::new() }
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.status.number().to_be_bytes());
        out.extend_from_slice(&(self.streams.len() as u32).to_be_bytes());
        for stream in &self.streams {
            out.extend_from_slice(&stream.id.to_be_bytes());
            out.extend_from_slice(&stream.trace.to_be_bytes());
            out.extend_from_slice(&u32::from(stream.is_metadata).to_be_bytes());
            put_text(out, &stream.path, PATH);
            put_text(out, &stream.channel, NAME);
        }
    }

    /// Decodes a reply.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the status is unknown, or for more than 16,384 streams.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, Malformed> {
        let size = list_size(bytes, 8, STREAM_SIZE, MOST_STREAMS, "streams")?;
        let Some(Fields(whole)) = Fields::of(bytes, size) else {
            return Ok(Decoded::Needs(size));
        };
        let status = S::of(Fields(whole).u32(0))?;
        let streams = whole[8..].chunks_exact(STREAM_SIZE).map(|record| {
            let fields = Fields(record);
            StreamRecord {
                id: fields.u64(0),
                trace: fields.u64(8),
                is_metadata: fields.u32(16) != 0,
                path: fields.text(20, PATH),
                channel: fields.text(20 + PATH, NAME),
            }
        });
        Ok(Decoded::Whole(Self { status, streams: streams.collect() }, size))
    }
}
