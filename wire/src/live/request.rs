//! The requests of a viewer.

use super::MAJOR;
use crate::fields::{Fields, Reader, Short, Writer, layout};
use crate::{DecodeError, Decoded};

/// The size of the header: size of the payload (u64), command (u32), version (u32, 0).
const HEADER: usize = 16;
/// Maximum size of a payload, in bytes. Bytes after the structure of the command are ignored.
const LONGEST_PAYLOAD: u64 = 4096;
/// The size of CONNECT, in both directions.
const CONNECT_SIZE: usize = 20;

const CONNECT: u32 = 1;
const LIST_SESSIONS: u32 = 2;
const ATTACH_SESSION: u32 = 3;
const GET_NEXT_INDEX: u32 = 4;
const GET_PACKET: u32 = 5;
const GET_METADATA: u32 = 6;
const GET_NEW_STREAMS: u32 = 7;
const CREATE_SESSION: u32 = 8;
const DETACH_SESSION: u32 = 9;
// An extension of LTTng's protocol; sent only to this project's collector, which identifies itself in CONNECT.
const CHALLENGE: u32 = 0x5450_0001;
const PROVE: u32 = 0x5450_0002;
const CLOCK: u32 = 0x5450_0003;

/// The viewer session id with which this project's collector identifies itself in CONNECT. LTTng's viewers ignore it.
const COLLECTOR: u64 = 0x5450_4C49_5645_0001;
/// The same for a collector that requires a shared key.
const KEYED: u64 = 0x5450_4B45_5900_0001;

/// The first message, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The viewer session id. A viewer sends `u64::MAX`, a relay chooses one.
    pub viewer_session: u64,
    /// The major version of the protocol.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// 1 for a connection of commands; a relay sends 0.
    pub kind: u32,
}

/// The position where a viewer begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// At the first packet that the relay has.
    Beginning,
    /// At the first packet that is completed after the request. A relay may also deliver older ones.
    Last,
}

/// A request of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Begins the connection.
    Connect(Connect),
    /// Lists the sessions of the relay.
    ListSessions,
    /// Creates the viewer's own session object, to which sessions are attached.
    CreateSession,
    /// Attaches a session.
    Attach {
        /// The id of the session in the list.
        session: u64,
        /// Unused, 0.
        offset: u64,
        /// The position to begin at.
        seek: Seek,
    },
    /// The index of the next packet.
    NextIndex {
        /// The stream.
        stream: u64,
    },
    /// A range of bytes of a stream.
    Packet {
        /// The stream.
        stream: u64,
        /// The first byte, relative to the same origin as [`Index::offset`](super::Index::offset).
        offset: u64,
        /// Maximum number of bytes.
        length: u32,
    },
    /// The metadata not delivered yet.
    Metadata {
        /// The metadata stream.
        stream: u64,
    },
    /// The streams not announced yet.
    NewStreams {
        /// The session.
        session: u64,
    },
    /// Requests a random number.
    Challenge,
    /// Authenticates the viewer with the shared key.
    Prove {
        /// The random number of the viewer.
        nonce: [u8; 32],
        /// The viewer's code: [`Side::Viewer`](crate::stream::Side::Viewer).
        code: [u8; 32],
    },
    /// Requests the alignment between the clock of the stream's trace and the collector's clock.
    Clock {
        /// A data stream that was announced.
        stream: u64,
    },
    /// Ends the reading of a session.
    Detach {
        /// The session.
        session: u64,
    },
}

impl Connect {
    /// The message that this implementation sends as a viewer.
    pub const fn viewer() -> Self {
        Self { viewer_session: u64::MAX, major: MAJOR, minor: super::MINOR, kind: 1 }
    }

    /// The reply that this implementation sends as a relay.
    pub const fn relay(viewer_session: u64) -> Self {
        Self { viewer_session, major: MAJOR, minor: super::MINOR, kind: 0 }
    }

    /// The reply of this project's collector.
    pub const fn collector() -> Self {
        Self::relay(COLLECTOR)
    }

    /// True if the relay is this project's collector, which supports [`Request::Clock`].
    pub const fn is_collector(&self) -> bool {
        matches!(self.viewer_session, COLLECTOR | KEYED)
    }

    /// The reply of a collector that requires a shared key.
    pub const fn keyed() -> Self {
        Self::relay(KEYED)
    }

    /// True if the relay requires a shared key.
    pub const fn asks_for_key(&self) -> bool {
        self.viewer_session == KEYED
    }

    /// Appends the structure, which is the whole reply of a relay.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write(Writer(out));
    }

    /// Decodes the reply of a relay.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        Decoded::read(bytes, CONNECT_SIZE, Self::read)
    }
}

layout!(Connect { viewer_session, major, minor, kind });

impl Request {
    /// Appends the request with its header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.resize(begin + HEADER, 0);
        let to = Writer(out);
        let command = match self {
            Self::Connect(connect) => {
                connect.encode(to.0);
                CONNECT
            }
            Self::ListSessions => LIST_SESSIONS,
            Self::CreateSession => CREATE_SESSION,
            Self::Attach { session, offset, seek } => {
                to.u64(*session).u64(*offset).u32(if *seek == Seek::Beginning { 1 } else { 2 });
                ATTACH_SESSION
            }
            Self::NextIndex { stream } => {
                to.u64(*stream);
                GET_NEXT_INDEX
            }
            Self::Packet { stream, offset, length } => {
                to.u64(*stream).u64(*offset).u32(*length);
                GET_PACKET
            }
            Self::Metadata { stream } => {
                to.u64(*stream);
                GET_METADATA
            }
            Self::NewStreams { session } => {
                to.u64(*session);
                GET_NEW_STREAMS
            }
            Self::Challenge => CHALLENGE,
            Self::Prove { nonce, code } => {
                to.bytes(nonce).bytes(code);
                PROVE
            }
            Self::Clock { stream } => {
                to.u64(*stream);
                CLOCK
            }
            Self::Detach { session } => {
                to.u64(*session);
                DETACH_SESSION
            }
        };
        let payload = (out.len() - begin - HEADER) as u64;
        out[begin..begin + 8].copy_from_slice(&payload.to_be_bytes());
        out[begin + 8..begin + 12].copy_from_slice(&command.to_be_bytes());
    }

    /// Decodes the request at the start of `bytes`. Its version is ignored, as in `lttng-relayd`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the command or a number in it is unknown, or if the payload is shorter than its structure, or longer than 4096 bytes. A
    /// relay must then close the connection.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        let mut header = Reader::new(bytes);
        let (Ok(payload), Ok(kind), Ok(_version)) = (header.u64(), header.u32(), header.u32()) else {
            return Ok(Decoded::Needs(HEADER));
        };
        let structure = match kind {
            CONNECT | ATTACH_SESSION | GET_PACKET => 20,
            LIST_SESSIONS | CREATE_SESSION | CHALLENGE => 0,
            PROVE => 64,
            GET_NEXT_INDEX | GET_METADATA | GET_NEW_STREAMS | DETACH_SESSION | CLOCK => 8,
            _ => return Err(DecodeError::Command(kind)),
        };
        if payload < structure {
            return Err(DecodeError::Short { kind, size: payload });
        }
        if payload > LONGEST_PAYLOAD {
            return Err(DecodeError::TooMany { what: "bytes of a request", count: payload, most: LONGEST_PAYLOAD });
        }
        Decoded::read(bytes, HEADER + payload as usize, |fields| {
            fields.bytes(HEADER)?;
            Self::read(kind, fields)
        })
        .transpose()
    }

    fn read(kind: u32, fields: &mut Reader<'_>) -> Result<Result<Self, DecodeError>, Short> {
        Ok(Ok(match kind {
            CONNECT => Self::Connect(Connect::read(fields)?),
            LIST_SESSIONS => Self::ListSessions,
            ATTACH_SESSION => {
                let (session, offset) = (fields.u64()?, fields.u64()?);
                let seek = match fields.u32()? {
                    1 => Seek::Beginning,
                    2 => Seek::Last,
                    number => return Ok(Err(DecodeError::Number { what: "seek", number })),
                };
                Self::Attach { session, offset, seek }
            }
            GET_NEXT_INDEX => Self::NextIndex { stream: fields.u64()? },
            GET_PACKET => Self::Packet { stream: fields.u64()?, offset: fields.u64()?, length: fields.u32()? },
            GET_METADATA => Self::Metadata { stream: fields.u64()? },
            GET_NEW_STREAMS => Self::NewStreams { session: fields.u64()? },
            DETACH_SESSION => Self::Detach { session: fields.u64()? },
            CHALLENGE => Self::Challenge,
            CLOCK => Self::Clock { stream: fields.u64()? },
            PROVE => Self::Prove { nonce: fields.array()?, code: fields.array()? },
            _ => Self::CreateSession,
        }))
    }
}
