//! Encodes and decodes the datagrams of the UDP trace server, in both directions and both layouts.
//!
//! ```text
//!   client ── ToServer ──▶ server      START, STOP (legacy); ACCEPT, ACK, LEAVE (batch)
//!   client ◀── ToClient ── server      marks, packets of one event (legacy); CHALLENGE to END (batch)
//! ```
//!
//! The legacy layout ([`legacy`]) equals the C structures of old clients, including padding. The batch layout ([`batch`], [`client`])
//! contains CTF packets ([`packet`]). All integers are big-endian, except those in CTF packets. This module has no socket, clock or state.
//! The offsets are those of the tables in `docs/format-udp.md`.

pub mod batch;
mod checksum;
pub mod client;
pub mod legacy;
pub mod packet;

pub use batch::{Batch, Challenge, End, Losses, Ping, Text, TextKind, Welcome};
pub use client::{Accept, Ack, ToServer};
pub use legacy::{LegacyPacket, Mark, MarkKind};
pub use packet::{CtfPackets, packet_header};

use crate::fields::{Reader, Short};
use thiserror::Error;

/// The name of the channel for messages of other programs that the server ingests.
pub const INGEST_CHANNEL: &str = "outside";
/// The name of the only event in that channel. Its field `data` is the message.
pub const INGEST_EVENT: &str = "outside:message";
/// The default port of a server.
pub const SERVER_PORT: u16 = 5556;
/// The environment variable for another port.
pub const SERVER_PORT_VARIABLE: &str = "TRACE_SERVER_PORT";
/// The version of the batch layout.
pub const VERSION: u8 = 1;

/// The reason why bytes are not a datagram of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is shorter than its kind requires.
    #[error("it is too short")]
    Short,
    /// It is longer than its kind or the layout allows.
    #[error("it is too long")]
    Long,
    /// Its kind is unknown.
    #[error("its kind is unknown")]
    Kind,
    /// It was damaged.
    #[error("its checksum is wrong")]
    Checksum,
    /// A field has an invalid value.
    #[error("its fields contradict each other")]
    Field,
}

impl From<Short> for DecodeError {
    fn from(_: Short) -> Self {
        Self::Short
    }
}

/// A message from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToClient<'a> {
    /// Legacy: one event.
    Packet(LegacyPacket<'a>),
    /// Legacy: a mark.
    Mark(Mark),
    /// Batch: a request to prove the address.
    Challenge(Challenge),
    /// Batch: the session is open.
    Welcome(Welcome),
    /// Batch: a piece of the metadata or of the account.
    Text(Text<'a>),
    /// Batch: events.
    Batch(Batch<'a>),
    /// Batch: a keep-alive.
    Ping(Ping),
    /// Batch: the session has ended.
    End(End),
}

/// A datagram from a server, in either layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromServer<'a> {
    /// Counts all messages of the server over all sessions, including repetitions. Wraps around.
    pub seq: u32,
    /// The session; `None` in the legacy layout, 0 in a challenge.
    pub session: Option<u32>,
    /// The message.
    pub message: ToClient<'a>,
}

impl<'a> FromServer<'a> {
    /// Decodes a datagram from a server.
    ///
    /// Reads all bytes in the batch layout, for the checksum, and only the header in the legacy layout.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not a datagram of this protocol.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = Reader::new(datagram);
        let (seq, kind) = (fields.u32()?, fields.u8()?);
        let legacy = |message| Self { seq, session: None, message };
        match kind {
            legacy::PACKET => legacy::packet(datagram).map(|packet| legacy(ToClient::Packet(packet))),
            legacy::MARK => legacy::mark(datagram).map(|mark| legacy(ToClient::Mark(mark))),
            _ => {
                let (session, message) = batch::decode(kind, datagram)?;
                Ok(Self { seq, session: Some(session), message })
            }
        }
    }
}
