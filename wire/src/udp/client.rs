//! The messages of a client.
//!
//! Legacy commands are single bytes. The others begin with four bytes that no command begins with, and are sent only to a server that has
//! offered the batch layout.

use super::DecodeError;
use super::checksum::{check, seal, sized};
use crate::fields::{Reader, Writer};

/// The first four bytes of a message in the batch layout.
pub const MAGIC: [u8; 4] = *b"tpu1";
/// The size of ACCEPT: at least that of any answer to an unproven address.
pub const ACCEPT_SIZE: usize = 64;
/// The size of ACK.
pub const ACK_SIZE: usize = 40;
/// The size of LEAVE.
pub const LEAVE_SIZE: usize = 16;
/// Maximum size of a client's message, in bytes.
pub const LONGEST: usize = ACCEPT_SIZE;
/// The lowest MTU that a client may request, in bytes.
pub const MIN_MTU: u16 = 512;
/// The default MTU, in bytes.
pub const DEFAULT_MTU: u16 = 1400;
/// Maximum payload of a UDP datagram over IPv4, in bytes.
pub const LARGEST: u16 = 65_507;

const START: u8 = 1;
const STOP: u8 = 2;
const ACCEPT: u8 = 1;
const ACK: u8 = 2;
const LEAVE: u8 = 3;

/// A message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToServer {
    /// Legacy: begin a session.
    Start,
    /// Legacy: end it.
    Stop,
    /// Batch: accept the offer.
    Accept(Accept),
    /// Batch: acknowledge.
    Ack(Ack),
    /// Batch: end the session with this number.
    Leave(u32),
}

/// A client accepts the offer of the batch layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The nonce of the offer.
    pub nonce: u16,
    /// Maximum size of a datagram with several events, in bytes of UDP payload.
    pub mtu: u16,
    /// Maximum size of a datagram with a single event that does not fit into `mtu`, in bytes; at least `mtu`.
    pub largest: u16,
    /// Maximum number of unacknowledged messages of the server; 0: no limit.
    pub window: u16,
    /// The token of the challenge; zero before there was one.
    pub token: [u8; 16],
    /// Maximum number of events that the server may send in batches of this session; 0: no limit.
    pub most_events: u64,
}

impl Accept {
    /// Accepts the offer with this nonce: datagrams of [`DEFAULT_MTU`] bytes, longer ones where a single event needs it, no window,
    /// and any number of events.
    pub const fn new(nonce: u16) -> Self {
        Self { nonce, mtu: DEFAULT_MTU, largest: LARGEST, window: 0, token: [0; 16], most_events: 0 }
    }
}

/// An acknowledgement of the data received by a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The session.
    pub session: u32,
    /// Number of metadata bytes from its beginning up to the first gap.
    pub metadata: u32,
    /// Number of account bytes, likewise.
    pub account: u32,
    /// Number of events, without duplicates.
    pub events: u64,
    /// The highest `seq` of this session, in wrapping order.
    pub seq: u32,
    /// True if END was received.
    pub ended: bool,
}

impl ToServer {
    /// Appends the datagram to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let size = match self {
            Self::Start => return out.push(START),
            Self::Stop => return out.push(STOP),
            Self::Accept(accept) => {
                let to = begin(out, ACCEPT, 0).u8(super::VERSION).u8(0).u16(accept.nonce).u16(accept.mtu);
                let to = to.u16(accept.largest).u16(accept.window).bytes(&[0; 6]);
                to.bytes(&accept.token).u64(accept.most_events);
                ACCEPT_SIZE
            }
            Self::Ack(ack) => {
                let to = begin(out, ACK, ack.session).u32(ack.metadata).u32(ack.account).u64(ack.events);
                to.u32(ack.seq).u8(ack.ended.into());
                ACK_SIZE
            }
            Self::Leave(session) => {
                begin(out, LEAVE, *session);
                LEAVE_SIZE
            }
        };
        out.resize(start + size, 0);
        seal(&mut out[start..]);
    }

    /// Decodes a datagram from a client.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not a datagram of this protocol.
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        match datagram {
            [START] => return Ok(Self::Start),
            [STOP] => return Ok(Self::Stop),
            [] | [_] => return Err(DecodeError::Kind),
            _ => {}
        }
        let mut fields = Reader::new(datagram);
        if fields.array()? != MAGIC {
            return Err(DecodeError::Kind);
        }
        let kind = fields.u8()?;
        // Zeros and the checksum.
        fields.bytes(7)?;
        let session = fields.u32()?;
        let size = match kind {
            ACCEPT => ACCEPT_SIZE,
            ACK => ACK_SIZE,
            LEAVE => LEAVE_SIZE,
            _ => return Err(DecodeError::Kind),
        };
        sized(datagram, size)?;
        check(datagram)?;
        match kind {
            ACCEPT => accept(&mut fields).map(Self::Accept),
            ACK => Ok(Self::Ack(Ack {
                session,
                metadata: fields.u32()?,
                account: fields.u32()?,
                events: fields.u64()?,
                seq: fields.u32()?,
                ended: fields.u8()? & 1 != 0,
            })),
            _ => Ok(Self::Leave(session)),
        }
    }
}

fn begin(out: &mut Vec<u8>, kind: u8, session: u32) -> Writer<'_> {
    Writer(out).bytes(&MAGIC).u8(kind).bytes(&[0; 7]).u32(session)
}

fn accept(fields: &mut Reader<'_>) -> Result<Accept, DecodeError> {
    let (version, _) = (fields.u8()?, fields.u8()?);
    let (nonce, mtu, largest, window) = (fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?);
    fields.bytes(6)?;
    let (token, most_events) = (fields.array()?, fields.u64()?);
    let is_sane = version == super::VERSION && (MIN_MTU..=LARGEST).contains(&mtu) && (mtu..=LARGEST).contains(&largest);
    if is_sane { Ok(Accept { nonce, mtu, largest, window, token, most_events }) } else { Err(DecodeError::Field) }
}
