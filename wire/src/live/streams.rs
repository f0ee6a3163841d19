//! Replies with lists of sessions and of streams.

use super::Status;
use crate::fields::{Reader, Short, Writer};
use crate::{DecodeError, Decoded};

/// Maximum number of sessions in a list.
const MAX_SESSIONS: u32 = 65_536;
/// Maximum number of streams in a reply.
const MAX_STREAMS: u32 = 16_384;
/// The size of a session in a list.
const SESSION_SIZE: usize = 339;
/// The size of the announcement of a stream.
const STREAM_SIZE: usize = 4371;
/// Sizes of fields in bytes, including the terminating NUL.
const HOSTNAME: usize = 64;
const NAME: usize = 255;
const PATH: usize = 4096;

/// A session of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id, used to attach it.
    pub id: u64,
    /// The period of its live timer, in microseconds; 0 if it is not live.
    pub live_timer_us: u32,
    /// Number of attached viewers.
    pub clients: u32,
    /// Number of streams; LTTng's relays include the metadata.
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
    /// The number of its trace: the same for all streams, and the metadata, of one trace.
    pub trace: u64,
    /// True if it contains the metadata of the trace.
    pub is_metadata: bool,
    /// The path where the relay stores it; informative. At most 4095 bytes are sent.
    pub path: String,
    /// The name of the channel; informative. At most 254 bytes are sent.
    pub channel: String,
}

/// Announced streams. Only a successful status is followed by any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams<S> {
    /// The result of the request.
    pub status: S,
    /// The streams.
    pub streams: Vec<StreamRecord>,
}

/// The size of a list with a head of `head` bytes, whose last four are the number of records.
fn list_size(bytes: &[u8], head: usize, record: usize, most: u32, what: &'static str) -> Result<usize, DecodeError> {
    let mut fields = Reader::new(bytes);
    match fields.bytes(head - 4).and_then(|_| fields.u32()) {
        Err(Short) => Ok(head),
        Ok(count) if count > most => Err(DecodeError::TooMany { what, count: count.into(), most: most.into() }),
        Ok(count) => Ok(head + count as usize * record),
    }
}

impl SessionRecord {
    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        let to = to.u64(self.id).u32(self.live_timer_us).u32(self.clients).u32(self.streams);
        to.padded(&self.hostname, HOSTNAME).padded(&self.name, NAME)
    }

    fn read(fields: &mut Reader<'_>) -> Result<Self, Short> {
        let (id, live_timer_us, clients, streams) = (fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let (hostname, name) = (fields.padded(HOSTNAME)?, fields.padded(NAME)?);
        Ok(Self { id, live_timer_us, clients, streams, hostname, name })
    }
}

impl StreamRecord {
    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        let to = to.u64(self.id).u64(self.trace).u32(self.is_metadata.into());
        to.padded(&self.path, PATH).padded(&self.channel, NAME)
    }

    fn read(fields: &mut Reader<'_>) -> Result<Self, Short> {
        let (id, trace, is_metadata) = (fields.u64()?, fields.u64()?, fields.u32()? != 0);
        Ok(Self { id, trace, is_metadata, path: fields.padded(PATH)?, channel: fields.padded(NAME)? })
    }
}

impl Sessions {
    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.0.iter().fold(Writer(out).u32(self.0.len() as u32), |to, session| session.write(to));
    }

    /// Decodes a reply.
    ///
    /// # Errors
    ///
    /// [`DecodeError::TooMany`] for more than 65,536 sessions.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let size = list_size(bytes, 4, SESSION_SIZE, MAX_SESSIONS, "sessions")?;
        Ok(Decoded::read(bytes, size, |fields| {
            let count = fields.u32()?;
            (0..count).map(|_| SessionRecord::read(fields)).collect::<Result<_, _>>().map(Self)
        }))
    }
}

impl<S: Status> Streams<S> {
    /// A reply without streams.
    pub const fn none(status: S) -> Self {
        Self { status, streams: Vec::new() }
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let to = Writer(out).u32(self.status.number()).u32(self.streams.len() as u32);
        self.streams.iter().fold(to, |to, stream| stream.write(to));
    }

    /// Decodes a reply.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the status is unknown, or for more than 16,384 streams.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let size = list_size(bytes, 8, STREAM_SIZE, MAX_STREAMS, "streams")?;
        Decoded::read(bytes, size, |fields| {
            let (status, count) = (S::of(fields.u32()?), fields.u32()?);
            let streams = (0..count).map(|_| StreamRecord::read(fields)).collect::<Result<_, _>>()?;
            Ok(status.map(|status| Self { status, streams }))
        })
        .transpose()
    }
}
