//! The messages of a sender.

use super::{DecodeError, LARGEST_PACKET, LONGEST_PIECE, MAX_ENTRIES, frame};
use crate::fields::{Fields, Reader, Writer, layout};

/// A message to the collector, in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToCollector<'a> {
    /// Opens or resumes a session.
    Hello(Hello<'a>),
    /// The authentication code of the sender.
    Auth([u8; 32]),
    /// A stream.
    Announce(Announce<'a>),
    /// A piece of the metadata.
    Metadata(Piece<'a>),
    /// A synchronisation point.
    Sync(Sync),
    /// Requested packets that the sender no longer has.
    Gone(SeqRange),
    /// Requests the collector's time.
    ClockProbe(ClockProbe),
    /// The end of streams.
    Close(Close),
    /// A piece of the account, and the total length of the account.
    Account(Piece<'a>, u64),
    /// The sender ends immediately.
    GiveUp,
}

/// Opens or resumes a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The protocol version.
    pub version: u32,
    /// True if data is sent over UDP.
    pub udp: bool,
    /// Identifies the session when the sender reconnects.
    pub key: [u8; 16],
    /// The uuid of the trace.
    pub trace: [u8; 16],
    /// The uuid of the trace's clock; zero if it is not known.
    pub clock: [u8; 16],
    /// The sender's random number, for the authentication codes.
    pub nonce: [u8; 32],
    /// The interval between two SYNC, in ms.
    pub sync_interval: u32,
    /// The largest datagram, in bytes.
    pub mtu: u32,
    /// The size of the retransmission buffer, in bytes.
    pub resend_buffer: u64,
    /// The host.
    pub host: &'a str,
    /// The session.
    pub session: &'a str,
    /// The process: name, id and start.
    pub process: &'a str,
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce<'a> {
    /// The number of the request, which the answer repeats.
    pub request: u32,
    /// The stream class.
    pub class: u32,
    /// The stream instance.
    pub instance: u64,
    /// The size of its largest packet, in bytes.
    pub packet_size: u32,
    /// Host, session, process, channel and stream.
    pub names: [&'a str; 5],
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its offset.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A synchronisation point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Its number, from 1.
    pub number: u64,
    /// The time of the session, in ns of the trace's clock.
    pub time: u64,
    /// Added to a time of the trace to get a time of the collector, in ns.
    pub offset: i64,
    /// The error bound of the offset, in ns.
    pub bound: u64,
    /// The streams.
    pub entries: Vec<SyncEntry>,
}

/// A stream at a synchronisation point: every packet after `last` begins at or after `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncEntry {
    /// The stream.
    pub handle: u64,
    /// `seq` of the last packet sent.
    pub last: u64,
    /// The time, in ns of the trace's clock.
    pub time: u64,
}

/// Packets of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqRange {
    /// The stream.
    pub handle: u64,
    /// `seq` of the first packet.
    pub first: u64,
    /// `seq` of the last packet; not below `first`.
    pub last: u64,
}

/// Requests the collector's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockProbe {
    /// Its number.
    pub number: u64,
    /// When it was sent, in ns of the trace's clock.
    pub sent: u64,
}

/// The end of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// True if the session ends.
    pub whole: bool,
    /// The streams.
    pub entries: Vec<ClosedStream>,
}

/// A stream that has ended, with the totals of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedStream {
    /// The stream.
    pub handle: u64,
    /// `seq` of the last packet.
    pub last: u64,
    /// Number of packets sent, without repetitions.
    pub packets: u64,
    /// Number of records up to the end of the last packet.
    pub events_after: u64,
}

layout! {
    SyncEntry { handle, last, time }
    SeqRange { handle, first, last }
    ClockProbe { number, sent }
    ClosedStream { handle, last, packets, events_after }
}

impl<'a> ToCollector<'a> {
    /// Decodes the payload of a frame of this kind.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not such a message.
    pub fn decode(kind: u32, payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = Reader::new(payload);
        Ok(match kind {
            1 => Self::Hello(Hello::read(&mut fields)?),
            2 => Self::Auth(fields.array()?),
            3 => Self::Announce(Announce::read(&mut fields)?),
            4 => Self::Metadata(Piece { offset: fields.u64()?, bytes: piece(&mut fields)? }),
            5 => Self::Sync(Sync::read(&mut fields)?),
            6 => Self::Gone(SeqRange::read(&mut fields)?.checked()?),
            7 => Self::ClockProbe(ClockProbe::read(&mut fields)?),
            8 => Self::Close(Close { whole: fields.u32()? & 1 != 0, entries: fields.entries(MAX_ENTRIES)? }),
            9 => {
                let (offset, whole) = (fields.u64()?, fields.u64()?);
                let bytes = piece(&mut fields)?;
                if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > whole) {
                    return Err(DecodeError::Field);
                }
                Self::Account(Piece { offset, bytes }, whole)
            }
            10 => Self::GiveUp,
            _ => return Err(DecodeError::Kind),
        })
    }

    /// Appends the frame. Texts and lists must be within their limits, otherwise the other side refuses it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => frame(out, 1, |to| hello.write(to)),
            Self::Auth(code) => frame(out, 2, |to| to.bytes(code)),
            Self::Announce(announce) => frame(out, 3, |to| announce.write(to)),
            Self::Metadata(piece) => frame(out, 4, |to| to.u64(piece.offset).bytes(piece.bytes)),
            Self::Sync(sync) => frame(out, 5, |to| sync.write(to)),
            Self::Gone(gone) => frame(out, 6, |to| gone.write(to)),
            Self::ClockProbe(probe) => frame(out, 7, |to| probe.write(to)),
            Self::Close(close) => frame(out, 8, |to| to.u32(close.whole.into()).entries(&close.entries)),
            Self::Account(piece, whole) => {
                frame(out, 9, |to| to.u64(piece.offset).u64(*whole).bytes(piece.bytes));
            }
            Self::GiveUp => frame(out, 10, |to| to),
        }
    }
}

fn piece<'a>(fields: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    match fields.rest() {
        long if long.len() > LONGEST_PIECE => Err(DecodeError::Long),
        piece => Ok(piece),
    }
}

impl<'a> Hello<'a> {
    fn read(fields: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: fields.u32()?,
            udp: fields.u32()? & 1 != 0,
            key: fields.array()?,
            trace: fields.array()?,
            clock: fields.array()?,
            nonce: fields.array()?,
            sync_interval: fields.u32()?,
            mtu: fields.u32()?,
            resend_buffer: fields.u64()?,
            host: fields.name()?,
            session: fields.name()?,
            process: fields.name()?,
        })
    }

    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        let to = to.u32(self.version).u32(self.udp.into()).bytes(&self.key).bytes(&self.trace).bytes(&self.clock);
        let to = to.bytes(&self.nonce).u32(self.sync_interval).u32(self.mtu).u64(self.resend_buffer);
        to.text(self.host).text(self.session).text(self.process)
    }
}

impl<'a> Announce<'a> {
    fn read(fields: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (request, class, instance) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let packet_size = fields.u32()?;
        if packet_size > LARGEST_PACKET {
            return Err(DecodeError::Long);
        }
        let mut names = [""; 5];
        for name in &mut names {
            *name = fields.name()?;
        }
        Ok(Self { request, class, instance, packet_size, names })
    }

    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        let to = to.u32(self.request).u32(self.class).u64(self.instance).u32(self.packet_size);
        self.names.iter().fold(to, |to, name| to.text(name))
    }
}

impl Sync {
    fn read(fields: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (number, time, offset, bound) = (fields.u64()?, fields.u64()?, fields.i64()?, fields.u64()?);
        Ok(Self { number, time, offset, bound, entries: fields.entries(MAX_ENTRIES)? })
    }

    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        let to = to.u64(self.number).u64(self.time).i64(self.offset).u64(self.bound);
        to.entries(&self.entries)
    }
}

impl SeqRange {
    pub(super) fn checked(self) -> Result<Self, DecodeError> {
        if self.first > self.last { Err(DecodeError::Field) } else { Ok(self) }
    }
}
