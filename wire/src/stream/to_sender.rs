//! The messages of a collector.

use super::to_collector::SeqRange;
use super::{DecodeError, MAX_ENTRIES, MAX_NACKS, frame};
use crate::fields::{Fields, Reader, Writer, layout};

/// A message to the sender, in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToSender<'a> {
    /// The collector's random number, if it requires a shared key.
    Challenge([u8; 32]),
    /// The session is open.
    Welcome(Welcome<'a>),
    /// A stream's file exists.
    Announced(AnnounceReply),
    /// The stored packets.
    Ack(Ack),
    /// Requests packets.
    Nack(Nack),
    /// The collector's time.
    ClockReply(ClockReply),
    /// Data can be sent.
    Ready(Ready),
    /// Allows (`None`) or suspends the sending of packets; then with the reason.
    Flow(Option<&'a str>),
    /// Streams are complete.
    Closed(Vec<StreamTotals>),
    /// The account is stored.
    Done,
    /// Packets that were given up.
    Lost(SeqRange),
    /// There is currently no room for a stream: the number of its announcement, and the reason.
    NoRoom(u32, &'a str),
    /// The connection ends.
    Error(ErrorCode, &'a str),
}

/// The session is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The protocol version.
    pub version: u32,
    /// True if the collector has data of this session.
    pub resumed: bool,
    /// True if it expects data over UDP.
    pub udp: bool,
    /// The number of the session in the collector.
    pub session: u64,
    /// Identifies the data of this connection.
    pub token: [u8; 16],
    /// Number of metadata bytes that the collector has.
    pub metadata: u64,
    /// The TCP port for data; 0 for the default.
    pub tcp_port: u16,
    /// The UDP port for data.
    pub udp_port: u16,
    /// The largest datagram that it accepts, in bytes.
    pub mtu: u32,
    /// Maximum number of packet bytes without acknowledgement.
    pub window: u64,
    /// The authentication code of the collector; zero without a shared key.
    pub code: [u8; 32],
    /// The name of the collector, for messages.
    pub name: &'a str,
}

/// A stream's file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnounceReply {
    /// The number of the announcement.
    pub request: u32,
    /// The handle of the stream.
    pub handle: u64,
    /// The lowest `seq` that is not stored.
    pub next: u64,
}

/// The progress of storing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The number of the last SYNC whose packets are all stored or given up; 0 for none.
    pub sync: u64,
    /// Number of stored metadata bytes.
    pub metadata: u64,
    /// The streams that have changed.
    pub entries: Vec<AckEntry>,
}

/// The progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckEntry {
    /// The stream.
    pub handle: u64,
    /// The lowest `seq` that is neither stored nor given up.
    pub next: u64,
}

/// Requests packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    /// The requested packets.
    pub entries: Vec<NackEntry>,
}

/// Complete packets of a stream, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackEntry {
    /// The stream.
    pub handle: u64,
    /// `seq` of the first packet.
    pub first: u64,
    /// `seq` of the last packet; equal to `first` if a part is requested.
    pub last: u64,
    /// The first byte of the part.
    pub offset: u32,
    /// Its length; 0 for complete packets.
    pub length: u32,
}

/// The collector's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReply {
    /// The number of the probe.
    pub number: u64,
    /// The time in the probe.
    pub sent: u64,
    /// When the probe was received, in ns of the collector's `CLOCK_REALTIME`.
    pub received: u64,
    /// When this answer was sent, likewise.
    pub replied: u64,
}

/// The transport on which data has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A data connection over TCP is attached.
    Tcp,
    /// A probe over UDP has arrived.
    Udp,
}

/// The totals of a complete stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTotals {
    /// The stream.
    pub handle: u64,
    /// Number of packets in its file.
    pub packets: u64,
    /// Number of packets that were sent and are not in the file.
    pub packets_lost: u64,
    /// Number of events in its file.
    pub events: u64,
    /// Number of events in packets that are not in the file, from the steps of `events_before`.
    pub events_lost: u64,
}

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// 1: unsupported version.
    Version,
    /// 2: wrong shared key.
    Key,
    /// 3: a refused name or announcement.
    Refused,
    /// 4: a malformed message, or one that is not valid in this state.
    Protocol,
    /// 100: the sender's address has its maximum number of sessions.
    Busy,
    /// 101: the collector is shutting down.
    Ending,
    /// 102: the collector cannot write.
    Storage,
    /// Another number.
    Other(u32),
}

impl ErrorCode {
    const KNOWN: [(Self, u32); 7] = [
        (Self::Version, 1),
        (Self::Key, 2),
        (Self::Refused, 3),
        (Self::Protocol, 4),
        (Self::Busy, 100),
        (Self::Ending, 101),
        (Self::Storage, 102),
    ];

    /// The number on the wire.
    pub fn number(self) -> u32 {
        match self {
            Self::Other(number) => number,
            code => Self::KNOWN.iter().find(|(known, _)| *known == code).map_or(0, |(_, number)| *number),
        }
    }

    /// True if another attempt may succeed.
    pub fn is_temporary(self) -> bool {
        self.number() >= 100
    }
}

impl From<u32> for ErrorCode {
    fn from(number: u32) -> Self {
        Self::KNOWN.iter().find(|(_, known)| *known == number).map_or(Self::Other(number), |(code, _)| *code)
    }
}

layout! {
    AnnounceReply { request, handle, next }
    AckEntry { handle, next }
    NackEntry { handle, first, last, offset, length }
    ClockReply { number, sent, received, replied }
    StreamTotals { handle, packets, packets_lost, events, events_lost }
}

impl<'a> ToSender<'a> {
    /// Decodes the payload of a frame of this kind.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not such a message.
    pub fn decode(kind: u32, payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = Reader::new(payload);
        let fields = &mut fields;
        Ok(match kind {
            129 => Self::Challenge(fields.array()?),
            130 => Self::Welcome(Welcome::read(fields)?),
            131 => match AnnounceReply::read(fields)? {
                AnnounceReply { handle: 0 | u64::MAX, .. } => return Err(DecodeError::Field),
                announced => Self::Announced(announced),
            },
            132 => {
                Self::Ack(Ack { sync: fields.u64()?, metadata: fields.u64()?, entries: fields.entries(MAX_ENTRIES)? })
            }
            133 => match fields.entries::<NackEntry>(MAX_NACKS)? {
                entries if entries.iter().all(NackEntry::is_consistent) => Self::Nack(Nack { entries }),
                _ => return Err(DecodeError::Field),
            },
            134 => Self::ClockReply(ClockReply::read(fields)?),
            135 => Self::Ready(match fields.u32()? {
                1 => Ready::Tcp,
                2 => Ready::Udp,
                _ => return Err(DecodeError::Field),
            }),
            136 => {
                let (state, reason) = (fields.u32()?, fields.text()?);
                Self::Flow((state != 0).then_some(reason))
            }
            137 => Self::Closed(fields.entries(MAX_ENTRIES)?),
            138 => Self::Done,
            139 => Self::Error(fields.u32()?.into(), fields.text()?),
            140 => Self::Lost(SeqRange::read(fields)?.checked()?),
            141 => Self::NoRoom(fields.u32()?, fields.text()?),
            _ => return Err(DecodeError::Kind),
        })
    }

    /// Appends the frame. Lists must be within their limits, otherwise the other side refuses it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Challenge(nonce) => frame(out, 129, |to| to.bytes(nonce)),
            Self::Welcome(welcome) => frame(out, 130, |to| welcome.write(to)),
            Self::Announced(announced) => frame(out, 131, |to| announced.write(to)),
            Self::Ack(ack) => frame(out, 132, |to| to.u64(ack.sync).u64(ack.metadata).entries(&ack.entries)),
            Self::Nack(nack) => frame(out, 133, |to| to.entries(&nack.entries)),
            Self::ClockReply(reply) => frame(out, 134, |to| reply.write(to)),
            Self::Ready(way) => frame(out, 135, |to| to.u32(if *way == Ready::Tcp { 1 } else { 2 })),
            Self::Flow(reason) => {
                frame(out, 136, |to| to.u32(reason.is_some().into()).text(reason.unwrap_or_default()));
            }
            Self::Closed(entries) => frame(out, 137, |to| to.entries(entries)),
            Self::Done => frame(out, 138, |to| to),
            Self::Lost(lost) => frame(out, 140, |to| lost.write(to)),
            Self::NoRoom(request, why) => frame(out, 141, |to| to.u32(*request).text(why)),
            Self::Error(code, text) => frame(out, 139, |to| to.u32(code.number()).text(text)),
        }
    }
}

impl<'a> Welcome<'a> {
    fn read(fields: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (version, flags) = (fields.u32()?, fields.u32()?);
        let (session, token, metadata) = (fields.u64()?, fields.array()?, fields.u64()?);
        let (tcp_port, udp_port, mtu, window) = (fields.u16()?, fields.u16()?, fields.u32()?, fields.u64()?);
        fields.u64()?;
        let (code, name) = (fields.array()?, fields.text()?);
        let (resumed, udp) = (flags & 1 != 0, flags & 2 != 0);
        Ok(Self { version, resumed, udp, session, token, metadata, tcp_port, udp_port, mtu, window, code, name })
    }

    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        let flags = u32::from(self.resumed) | u32::from(self.udp) << 1;
        let to = to.u32(self.version).u32(flags).u64(self.session).bytes(&self.token).u64(self.metadata);
        let to = to.u16(self.tcp_port).u16(self.udp_port).u32(self.mtu).u64(self.window).u64(0);
        to.bytes(&self.code).text(self.name)
    }
}

impl NackEntry {
    fn is_consistent(&self) -> bool {
        self.first <= self.last && (self.length == 0 || self.first == self.last)
    }
}
