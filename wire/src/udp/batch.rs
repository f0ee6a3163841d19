//! The batch layout: the messages of a server to a client that has accepted its offer.
//!
//! Every message has a header of 16 bytes. Its first five bytes are those of the legacy layout: `seq` and kind. Then come zeros up to offset 8, the
//! checksum and the session.

use super::checksum::{CHECKSUM, check, seal, sized};
use super::packet::CtfPackets;
use super::{DecodeError, ToClient};
use crate::fields::{Fields, Reader, Writer, layout, to_array};
use serde::Serialize;

/// The size of the header that every message has.
pub const HEADER: usize = 16;
/// The size of CHALLENGE.
pub const CHALLENGE_SIZE: usize = 32;
/// The size of WELCOME.
pub const WELCOME_SIZE: usize = 48;
/// Offset of the text in TEXT.
pub const TEXT_HEADER: usize = 28;
/// Offset of the packets in BATCH.
pub const BATCH_HEADER: usize = 32;
/// The size of PING.
pub const PING_SIZE: usize = 32;
/// The size of END.
pub const END_SIZE: usize = 88;
/// Maximum size of the metadata or the account, in bytes.
pub const LONGEST_TEXT: u32 = 64 << 20;

const CHALLENGE: u8 = 16;
const WELCOME: u8 = 17;
const TEXT: u8 = 18;
const BATCH: u8 = 19;
const PING: u8 = 20;
const END: u8 = 21;

/// A request to prove that the client receives datagrams at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// To be returned in ACCEPT.
    pub token: [u8; 16],
}

/// The session is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// True if this session is the first that reads this trace.
    pub first: bool,
    /// Maximum size of a datagram with several events, in bytes.
    pub mtu: u16,
    /// The silence of the client after which the server ends the session, in milliseconds.
    pub timeout_ms: u32,
    /// The trace's uuid.
    pub uuid: [u8; 16],
    /// Number of events that were sent in earlier sessions.
    pub earlier: u64,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// The trace's CTF metadata. It grows while events are added.
    Metadata,
    /// The trace's account (`docs/format-account.md`). Sent when the trace has ended.
    Account,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The kind of the text.
    pub kind: TextKind,
    /// Offset of the piece in the text, in bytes.
    pub offset: u32,
    /// Length of the whole text so far, in bytes.
    pub total: u32,
    /// The bytes of the piece.
    pub bytes: &'a [u8],
}

/// Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// Number of events in the earlier batches of this session.
    pub events_before: u64,
    /// Number of events in this batch.
    pub events: u32,
    /// The number of this batch in the session, from 0.
    pub number: u32,
    /// Consecutive CTF packets.
    pub packets: &'a [u8],
}

/// A keep-alive from a server that has sent nothing for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ping {
    /// Number of events in the batches of this session so far.
    pub events: u64,
    /// Number of batches of this session so far.
    pub batches: u32,
}

/// Events that the server could not send since the trace began, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Dropped while they waited for a client: they exceeded the server's limit, or no client connected in time.
    pub limit: u64,
    /// Dropped because of the rate limit.
    pub rate: u64,
    /// Too large for a message.
    pub too_large: u64,
    /// In packets that the server could not decode.
    pub failed: u64,
}

impl Losses {
    /// Their sum.
    pub fn total(&self) -> u64 {
        [self.limit, self.rate, self.too_large, self.failed].into_iter().fold(0, u64::saturating_add)
    }
}

/// The session has ended. Only repetitions of this message follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// True if the trace has ended as well.
    pub trace: bool,
    /// Number of batches of this session.
    pub batches: u32,
    /// Number of events in these batches.
    pub events: u64,
    /// Number of events sent in the legacy layout in this session, before the client accepted the offer.
    pub legacy: u64,
    /// Length of the metadata, in bytes.
    pub metadata: u32,
    /// Length of the account in bytes; 0 if there is none.
    pub account: u32,
    /// Events that were not sent.
    pub lost: Losses,
}

layout! {
    Ping { events, batches }
    Losses { limit, rate, too_large, failed }
}

impl Challenge {
    /// The datagram.
    pub fn encode(&self, seq: u32) -> [u8; CHALLENGE_SIZE] {
        message(seq, CHALLENGE, 0, |to| to.bytes(&self.token))
    }
}

impl Welcome {
    /// The datagram.
    pub fn encode(&self, seq: u32, session: u32) -> [u8; WELCOME_SIZE] {
        message(seq, WELCOME, session, |to| {
            let to = to.u8(self.first.into()).u8(super::VERSION).u16(self.mtu).u32(self.timeout_ms);
            to.bytes(&self.uuid).u64(self.earlier)
        })
    }
}

impl TextKind {
    const fn number(self) -> u8 {
        match self {
            Self::Metadata => 1,
            Self::Account => 2,
        }
    }
}

impl Text<'_> {
    /// Appends the datagram to `out`, which is empty.
    pub fn encode(&self, seq: u32, session: u32, out: &mut Vec<u8>) {
        let to = Writer(out).bytes(&[0; HEADER]).u8(self.kind.number()).bytes(&[0; 3]);
        to.u32(self.offset).u32(self.total).bytes(self.bytes);
        finish(out, seq, TEXT, session);
    }
}

impl<'a> Batch<'a> {
    /// Appends the datagram to `out`, which is empty.
    pub fn encode(&self, seq: u32, session: u32, out: &mut Vec<u8>) {
        out.resize(BATCH_HEADER, 0);
        out.extend_from_slice(self.packets);
        seal_batch(out, seq, session, self);
    }

    /// The CTF packets.
    pub fn packets(&self) -> CtfPackets<'a> {
        CtfPackets::new(self.packets)
    }
}

/// Completes a batch in `datagram`: writes the first [`BATCH_HEADER`] bytes, before the packets. Does nothing to a shorter datagram,
/// and ignores [`Batch::packets`].
pub fn seal_batch(datagram: &mut [u8], seq: u32, session: u32, batch: &Batch<'_>) {
    if let Some(head) = datagram.first_chunk_mut::<BATCH_HEADER>() {
        head[16..24].copy_from_slice(&batch.events_before.to_be_bytes());
        head[24..28].copy_from_slice(&batch.events.to_be_bytes());
        head[28..32].copy_from_slice(&batch.number.to_be_bytes());
        finish(datagram, seq, BATCH, session);
    }
}

impl Ping {
    /// The datagram.
    pub fn encode(&self, seq: u32, session: u32) -> [u8; PING_SIZE] {
        message(seq, PING, session, |to| self.write(to))
    }
}

impl End {
    /// The datagram.
    pub fn encode(&self, seq: u32, session: u32) -> [u8; END_SIZE] {
        message(seq, END, session, |to| {
            let to = to.u8(self.trace.into()).bytes(&[0; 3]).u32(self.batches).u64(self.events).u64(self.legacy);
            self.lost.write(to.u32(self.metadata).u32(self.account))
        })
    }
}

/// A message of a fixed size, with zeros after its fields.
fn message<const N: usize>(seq: u32, kind: u8, session: u32, write: impl FnOnce(Writer<'_>) -> Writer<'_>) -> [u8; N] {
    let mut out = to_array(|to| write(to.bytes(&[0; HEADER])));
    finish(&mut out, seq, kind, session);
    out
}

fn finish(out: &mut [u8], seq: u32, kind: u8, session: u32) {
    out[..4].copy_from_slice(&seq.to_be_bytes());
    out[4..CHECKSUM].copy_from_slice(&[kind, 0, 0, 0]);
    out[CHECKSUM + 4..HEADER].copy_from_slice(&session.to_be_bytes());
    seal(out);
}

/// Decodes a message of this kind: its session and contents.
pub(super) fn decode(kind: u8, datagram: &[u8]) -> Result<(u32, ToClient<'_>), DecodeError> {
    match kind {
        CHALLENGE => sized(datagram, CHALLENGE_SIZE)?,
        WELCOME => sized(datagram, WELCOME_SIZE)?,
        PING => sized(datagram, PING_SIZE)?,
        END => sized(datagram, END_SIZE)?,
        TEXT | BATCH => {}
        _ => return Err(DecodeError::Kind),
    }
    check(datagram)?;
    let mut fields = Reader::new(datagram);
    fields.bytes(CHECKSUM + 4)?;
    let session = fields.u32()?;
    let message = match kind {
        CHALLENGE => ToClient::Challenge(Challenge { token: fields.array()? }),
        WELCOME => ToClient::Welcome(welcome(&mut fields)?),
        TEXT => ToClient::Text(text(&mut fields)?),
        BATCH => ToClient::Batch(Batch {
            events_before: fields.u64()?,
            events: fields.u32()?,
            number: fields.u32()?,
            packets: fields.rest(),
        }),
        PING => ToClient::Ping(Ping::read(&mut fields)?),
        _ => ToClient::End(end(&mut fields)?),
    };
    Ok((session, message))
}

fn welcome(fields: &mut Reader<'_>) -> Result<Welcome, DecodeError> {
    let (first, version) = (fields.u8()? & 1 != 0, fields.u8()?);
    if version != super::VERSION {
        return Err(DecodeError::Field);
    }
    let (mtu, timeout_ms, uuid, earlier) = (fields.u16()?, fields.u32()?, fields.array()?, fields.u64()?);
    Ok(Welcome { first, mtu, timeout_ms, uuid, earlier })
}

fn text<'a>(fields: &mut Reader<'a>) -> Result<Text<'a>, DecodeError> {
    let kind = match fields.u8()? {
        1 => TextKind::Metadata,
        2 => TextKind::Account,
        _ => return Err(DecodeError::Kind),
    };
    fields.bytes(3)?;
    let (offset, total, bytes) = (fields.u32()?, fields.u32()?, fields.rest());
    let end = u64::from(offset) + bytes.len() as u64;
    if end > u64::from(total) || total > LONGEST_TEXT {
        return Err(DecodeError::Field);
    }
    Ok(Text { kind, offset, total, bytes })
}

fn end(fields: &mut Reader<'_>) -> Result<End, DecodeError> {
    let trace = fields.u8()? & 1 != 0;
    fields.bytes(3)?;
    let (batches, events, legacy) = (fields.u32()?, fields.u64()?, fields.u64()?);
    let (metadata, account) = (fields.u32()?, fields.u32()?);
    Ok(End { trace, batches, events, legacy, metadata, account, lost: Losses::read(fields)? })
}
