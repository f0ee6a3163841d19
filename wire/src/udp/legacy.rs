//! The legacy layout, with the exact bytes that old clients expect, including padding.

use super::DecodeError;
use super::checksum::sized;
use crate::fields::Reader;

/// Maximum size of a message of this layout, in bytes.
pub const LONGEST: usize = 1500;
/// Offset of an event's content.
pub const CONTENT: usize = 66;
/// Maximum size of the content, in bytes.
pub const LONGEST_CONTENT: usize = LONGEST - CONTENT;
/// The size of a mark, in bytes.
pub const MARK_SIZE: usize = 9;

pub(super) const PACKET: u8 = 1;
pub(super) const MARK: u8 = 2;

const OFFER: usize = 5;
const NONCE: usize = 6;
const MARK_KIND: usize = 8;
const TIME: usize = 32;
const CONTENT_SIZE: usize = 64;
/// The first byte of a mark's padding if the server offers the batch layout.
const OFFERED: u8 = 0xB0 | super::VERSION;

/// The kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// This session is the first that reads the trace.
    TraceBegin,
    /// The trace has ended.
    TraceEnd,
    /// The session begins.
    SessionBegin,
    /// The session has ended.
    SessionEnd,
}

impl MarkKind {
    const ALL: [(u8, Self); 4] =
        [(1, Self::TraceBegin), (2, Self::TraceEnd), (3, Self::SessionBegin), (4, Self::SessionEnd)];

    fn number(self) -> u8 {
        match self {
            Self::TraceBegin => 1,
            Self::TraceEnd => 2,
            Self::SessionBegin => 3,
            Self::SessionEnd => 4,
        }
    }
}

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its kind.
    pub kind: MarkKind,
    /// The nonce of an offer of the batch layout, in the padding of [`MarkKind::SessionBegin`]; `None` without an offer.
    pub offer: Option<u16>,
}

impl Mark {
    /// A mark without an offer.
    pub const fn new(kind: MarkKind) -> Self {
        Self { kind, offer: None }
    }

    /// The datagram. Only [`MarkKind::SessionBegin`] carries an offer.
    pub fn encode(self, seq: u32) -> [u8; MARK_SIZE] {
        let mut out = [0; MARK_SIZE];
        out[..4].copy_from_slice(&seq.to_be_bytes());
        out[4] = MARK;
        if let (Some(nonce), MarkKind::SessionBegin) = (self.offer, self.kind) {
            out[OFFER] = OFFERED;
            out[NONCE..NONCE + 2].copy_from_slice(&nonce.to_be_bytes());
        }
        out[MARK_KIND] = self.kind.number();
        out
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyPacket<'a> {
    /// Its time in nanoseconds since the epoch, or on the trace's clock if that has no offset.
    pub time_ns: u64,
    /// The event as an array of bytes.
    pub content: &'a [u8],
}

impl LegacyPacket<'_> {
    /// Appends the datagram to `out`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Long`] if the content does not fit; `out` is unchanged.
    pub fn encode(&self, seq: u32, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if self.content.len() > LONGEST_CONTENT {
            return Err(DecodeError::Long);
        }
        let mut head = [0; CONTENT];
        head[..4].copy_from_slice(&seq.to_be_bytes());
        head[4] = PACKET;
        // The high word comes first: both are one big-endian number.
        head[TIME..TIME + 8].copy_from_slice(&self.time_ns.to_be_bytes());
        head[CONTENT_SIZE..].copy_from_slice(&(self.content.len() as u16).to_be_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(self.content);
        Ok(())
    }
}

pub(super) fn packet(datagram: &[u8]) -> Result<LegacyPacket<'_>, DecodeError> {
    if datagram.len() > LONGEST {
        return Err(DecodeError::Long);
    }
    let mut fields = Reader::new(datagram);
    fields.bytes(TIME)?;
    let time_ns = fields.u64()?;
    fields.bytes(CONTENT_SIZE - TIME - 8)?;
    sized(datagram, CONTENT + usize::from(fields.u16()?))?;
    Ok(LegacyPacket { time_ns, content: fields.rest() })
}

pub(super) fn mark(datagram: &[u8]) -> Result<Mark, DecodeError> {
    sized(datagram, MARK_SIZE)?;
    let mut fields = Reader::new(datagram);
    fields.bytes(OFFER)?;
    let (offer, nonce, number) = (fields.u8()?, fields.u16()?, fields.u8()?);
    let (_, kind) = MarkKind::ALL.into_iter().find(|(n, _)| *n == number).ok_or(DecodeError::Kind)?;
    let is_offered = kind == MarkKind::SessionBegin && offer == OFFERED;
    Ok(Mark { kind, offer: is_offered.then_some(nonce) })
}
