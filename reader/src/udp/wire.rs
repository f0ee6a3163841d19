//! Datagrams of the UDP trace server, in both directions and both layouts: encoded and decoded here, and nowhere else.
//!
//! ```text
//!   client ── ToServer ──▶ server      START, STOP (legacy); ACCEPT, ACK, LEAVE (batch)
//!   client ◀── ToClient ── server      marks, packets of one event (legacy); CHALLENGE to END (batch)
//! ```
//!
//! The legacy layout is that of the C structures of old clients, holes included ([`legacy`]); the batch layout ([`batch`],
//! [`client`]) carries CTF packets ([`packet`]). All integers are big-endian, but for those in CTF packets. There is nothing
//! here but bytes: no socket, no clock, no state. Offsets are those of the page's tables.

pub mod batch;
mod bytes;
pub mod client;
pub mod legacy;
pub mod packet;

pub use batch::{Batch, Challenge, End, Losses, Ping, Text, TextKind, Welcome};
pub use client::{Accept, Ack, ToServer};
pub use legacy::{LegacyPacket, Mark, MarkKind};
pub use packet::{CtfPackets, PacketHeader};

use thiserror::Error;

/// The name of the channel of events that come from outside of the program: messages to the server.
pub const INGEST_CHANNEL: &str = "outside";
/// The port that a server listens on, unless told otherwise.
pub const SERVER_PORT: u16 = 5556;
/// The environment variable that names another one.
pub const SERVER_PORT_VARIABLE: &str = "TRACE_SERVER_PORT";
/// The version of the batch layout that is offered and understood.
pub const VERSION: u8 = 1;

/// Why bytes are no datagram of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Shorter than its kind.
    #[error("it is too short")]
    Short,
    /// Longer than its kind, or than the layout allows.
    #[error("it is too long")]
    Long,
    /// Of a kind that is not known.
    #[error("it is of no known kind")]
    Kind,
    /// What it carries is not what was sent.
    #[error("its checksum is wrong")]
    Checksum,
    /// A field has a value that it cannot have.
    #[error("its fields contradict each other")]
    Field,
}

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToClient<'a> {
    /// Legacy: one event.
    Packet(LegacyPacket<'a>),
    /// Legacy: a mark.
    Mark(Mark),
    /// Batch: prove your address.
    Challenge(Challenge),
    /// Batch: the session is open.
    Welcome(Welcome),
    /// Batch: a piece of the metadata or of the account.
    Text(Text<'a>),
    /// Batch: events.
    Batch(Batch<'a>),
    /// Batch: there is nothing to send.
    Ping(Ping),
    /// Batch: the session has ended.
    End(End),
}

/// A message of the server's, whatever its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromServer<'a> {
    /// Counts every message that the server sends, repetitions included, over all its sessions; wraps around.
    pub seq: u32,
    /// The session that it belongs to; `None` in the legacy layout, 0 in a challenge.
    pub session: Option<u32>,
    /// What it says.
    pub message: ToClient<'a>,
}

impl<'a> FromServer<'a> {
    /// Decodes a datagram that came from a server.
    ///
    /// Costs a look at each byte in the batch layout, for the checksum, and at the header alone in the legacy layout.
    ///
    /// # Errors
    ///
    /// [`Malformed`], whatever the bytes.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let seq = bytes::u32_at(datagram, 0)?;
        let kind = bytes::u8_at(datagram, 4)?;
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
