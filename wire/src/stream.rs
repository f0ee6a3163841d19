//! The stream protocol between a sender and a collector, defined in `docs/format-stream.md`.
//!
//! ```text
//!   sender ── ToCollector ──▶ collector      control connection, in frames: HELLO … GIVE_UP
//!   sender ◀── ToSender ───── collector      CHALLENGE … ERROR
//!   sender ── Attach, records ▶ collector    data connection over TCP: packets with their Route
//!   sender ── Datagram ─────▶ collector      data over UDP: fragments of the same packets, probes
//! ```
//!
//! Each side detects by [`Capabilities`], within a command of the relay protocol, that the other one supports it. Integers are big-endian, except
//! those inside a packet. No announced length makes a decoder allocate more than the bytes received.

mod datagram;
mod fields;
mod key;
mod packet;
mod to_collector;
mod to_sender;

pub use datagram::{Attach, Datagram, DatagramHeader, RecordHeader};
pub use key::{Handshake, SharedKey, Side};
pub use packet::{ROUTE_OFFSET, ROUTE_SIZE, Route, WIRE_HEAD, route_of, stored_packet, wire_head};
pub use to_collector::{
    Announce, ClockProbe, Close, ClosedStream, Hello, Piece, SeqRange, Sync, SyncEntry, ToCollector,
};
pub use to_sender::{
    Ack, AckEntry, AnnounceReply, ClockReply, ErrorCode, Nack, NackEntry, Ready, StreamTotals, ToSender, Welcome,
};

use crate::fields::{Reader, Short, Writer};
use thiserror::Error;

/// The version of the protocol.
pub const VERSION: u8 = 1;
/// The sequence number that stands for no packet: `prev_seq` of a stream's first packet, and *last* of a stream that has sent nothing.
pub const NO_SEQ: u64 = u64::MAX;
/// The error bound of an unknown clock alignment.
pub const NO_BOUND: u64 = u64::MAX;
/// The size of the header of a frame, in bytes.
pub const FRAME_HEADER: usize = 24;
/// Maximum size of a frame's payload, in bytes.
pub const LONGEST_PAYLOAD: usize = (1 << 20) + 64;
/// Maximum size of a piece of metadata or of an account in one frame, in bytes.
pub const LONGEST_PIECE: usize = 1 << 20;
/// Maximum length of a name of a host, session, process, channel or stream, in bytes.
pub const LONGEST_NAME: usize = 255;
/// Maximum size of a packet in wire form, in bytes.
pub const LARGEST_PACKET: u32 = 128 << 20;
/// Maximum number of streams of a session.
pub const MAX_STREAMS: usize = 1 << 16;
/// Maximum number of entries in one SYNC, ACK, CLOSE or CLOSED, so that each fits into a frame.
pub const MAX_ENTRIES: usize = 16 << 10;
/// Maximum number of entries in one NACK.
pub const MAX_NACKS: usize = 1024;
/// The prefixes of the nonces in the authentication codes: of a sender and of its collector, of a viewer and of its collector.
pub const AUTHENTICATED: [&[u8]; 4] = [
    b"tracepoint-stream sender",
    b"tracepoint-stream collector",
    b"tracepoint-live viewer",
    b"tracepoint-live collector",
];

/// Added to the message number in a frame's header.
const KIND_BASE: u32 = 0x5450_0000;

/// The reason why bytes are not a message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is shorter than its fields.
    #[error("it is too short")]
    Short,
    /// A frame or a text exceeds its maximum length or number of entries.
    #[error("it is too long")]
    Long,
    /// A frame of an unknown kind.
    #[error("its kind is unknown")]
    Kind,
    /// A text is not UTF-8, has a NUL, or is empty.
    #[error("it has a text that is empty, not UTF-8, or contains a NUL")]
    Text,
    /// The checksum of a datagram's header does not match.
    #[error("its checksum is wrong")]
    Checksum,
    /// Fields contradict each other or the protocol.
    #[error("its fields contradict each other")]
    Field,
}

impl From<Short> for DecodeError {
    fn from(_: Short) -> Self {
        Self::Short
    }
}

/// The capabilities of a side: the `query_flags` and flags of the relay's `GET_CONFIGURATION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The highest supported version.
    pub version: u8,
    /// A sender would like to send data over UDP; a collector accepts it.
    pub udp: bool,
    /// The collector requires a shared key.
    pub key: bool,
}

impl Capabilities {
    const MAGIC: u64 = 0x5450;

    /// The capabilities of this implementation.
    pub const fn new(udp: bool, key: bool) -> Self {
        Self { version: VERSION, udp, key }
    }

    /// The 64 flags.
    pub const fn flags(self) -> u64 {
        Self::MAGIC << 48 | (self.version as u64) << 40 | (self.udp as u64) << 1 | (self.key as u64) << 2
    }

    /// The capabilities in the other side's flags; `None` if it does not implement this protocol.
    pub const fn of(flags: u64) -> Option<Self> {
        let version = (flags >> 40) as u8;
        if flags >> 48 != Self::MAGIC || version == 0 {
            return None;
        }
        Some(Self { version, udp: flags & 2 != 0, key: flags & 4 != 0 })
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The number of the message.
    pub kind: u32,
    /// The bytes of the payload.
    pub size: usize,
}

impl FrameHeader {
    /// Decodes the header at the start of `bytes`; `None` if there are fewer than [`FRAME_HEADER`].
    ///
    /// # Errors
    ///
    /// [`DecodeError::Kind`] if it is the header of a command of the relay protocol, [`DecodeError::Long`] if the payload is too long.
    pub fn decode(bytes: &[u8]) -> Option<Result<Self, DecodeError>> {
        let header: &[u8; FRAME_HEADER] = bytes.first_chunk()?;
        Some(Self::of(header))
    }

    fn of(header: &[u8; FRAME_HEADER]) -> Result<Self, DecodeError> {
        let mut fields = Reader::new(header);
        fields.u64()?;
        let (size, kind) = (fields.u64()?, fields.u32()?);
        let kind = kind.checked_sub(KIND_BASE).filter(|kind| *kind < 256).ok_or(DecodeError::Kind)?;
        let size = usize::try_from(size).ok().filter(|size| *size <= LONGEST_PAYLOAD).ok_or(DecodeError::Long)?;
        Ok(Self { kind, size })
    }
}

/// Appends a frame, whose payload `write` appends.
fn frame(out: &mut Vec<u8>, kind: u32, write: impl FnOnce(Writer<'_>) -> Writer<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER]);
    write(Writer(out));
    let size = (out.len() - start - FRAME_HEADER) as u64;
    debug_assert!(size <= LONGEST_PAYLOAD as u64, "the sender splits longer messages");
    out[start + 8..start + 16].copy_from_slice(&size.to_be_bytes());
    out[start + 16..start + 20].copy_from_slice(&(KIND_BASE + kind).to_be_bytes());
}

#[cfg(test)]
mod tests;
