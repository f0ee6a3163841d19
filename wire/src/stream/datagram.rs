//! The headers of packets on a data connection over TCP, and in datagrams.

use super::packet::WIRE_HEAD;
use super::{DecodeError, LARGEST_PACKET};
use crate::fields::{Reader, to_array};

/// The first 32 bytes of a sender's data connection: the token of its session. LTTng's sender begins with a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The token.
    pub token: [u8; 16],
}

impl Attach {
    /// Its size in bytes, which equals that of an LTTng data header.
    pub const SIZE: usize = 32;
    const MAGIC: [u8; 8] = *b"TPSTREAM";

    /// Decodes the beginning of a data connection; `None` if it is LTTng's.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let token = bytes[8..].first_chunk()?;
        bytes.starts_with(&Self::MAGIC).then_some(Self { token: *token })
    }

    /// The bytes.
    pub fn encode(self) -> [u8; Self::SIZE] {
        to_array(|to| to.bytes(&Self::MAGIC).bytes(&self.token).u64(0))
    }
}

/// The header of a packet on a data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The size of the packet in wire form, in bytes.
    pub size: u32,
}

impl RecordHeader {
    /// Its own size in bytes.
    pub const SIZE: usize = 8;

    /// Decodes the header.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the packet would be too short or too long.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Result<Self, DecodeError> {
        let size = Reader::new(bytes).u32()?;
        match size {
            size if (size as usize) < WIRE_HEAD => Err(DecodeError::Short),
            size if size > LARGEST_PACKET => Err(DecodeError::Long),
            size => Ok(Self { size }),
        }
    }

    /// The bytes.
    pub fn encode(self) -> [u8; Self::SIZE] {
        to_array(|to| to.u32(self.size).u32(0))
    }
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// True for a probe, which contains only a token.
    pub probe: bool,
    /// The token of its session.
    pub token: [u8; 16],
    /// The stream.
    pub handle: u64,
    /// The packet's number in the stream.
    pub seq: u64,
    /// The offset of the fragment in the wire form of the packet.
    pub offset: u32,
    /// The size of the packet in wire form.
    pub total: u32,
    /// The size of every fragment of the packet except the last one.
    pub unit: u32,
    /// True if the fragment was sent before.
    pub again: bool,
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The header.
    pub header: DatagramHeader,
    /// The bytes of the fragment.
    pub bytes: &'a [u8],
}

impl DatagramHeader {
    /// Its size in bytes.
    pub const SIZE: usize = 56;
    const MAGIC: u16 = 0x5453;
    const VERSION: u8 = 1;
    const CHECKSUM: usize = 4;

    /// A probe.
    pub const fn probe(token: [u8; 16]) -> Self {
        Self { probe: true, token, handle: 0, seq: 0, offset: 0, total: 0, unit: 0, again: false }
    }

    /// The bytes.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes: [u8; Self::SIZE] = to_array(|to| {
            let to = to.u16(Self::MAGIC).u8(Self::VERSION).u8(if self.probe { 2 } else { 1 });
            let to = to.u32(0).bytes(&self.token).u64(self.handle).u64(self.seq).u32(self.offset);
            to.u32(self.total).u32(self.unit).u32(self.again.into())
        });
        let sum = crc32c::crc32c(&bytes);
        bytes[Self::CHECKSUM..Self::CHECKSUM + 4].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// The length of the fragment at its offset, if the fields are consistent.
    fn length(&self) -> Option<usize> {
        let is_packet = self.total as usize >= WIRE_HEAD && self.total <= LARGEST_PACKET && self.offset < self.total;
        let fits = is_packet && self.unit > 0 && self.offset.is_multiple_of(self.unit);
        fits.then(|| self.unit.min(self.total - self.offset) as usize)
    }
}

impl<'a> Datagram<'a> {
    /// Decodes a datagram.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not a datagram of this protocol.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let (bytes, rest) = datagram.split_first_chunk::<{ DatagramHeader::SIZE }>().ok_or(DecodeError::Short)?;
        let mut fields = Reader::new(bytes);
        if fields.u16()? != DatagramHeader::MAGIC || fields.u8()? != DatagramHeader::VERSION {
            return Err(DecodeError::Kind);
        }
        let (kind, sum) = (fields.u8()?, fields.u32()?);
        let mut unsealed = *bytes;
        unsealed[DatagramHeader::CHECKSUM..DatagramHeader::CHECKSUM + 4].fill(0);
        if sum != crc32c::crc32c(&unsealed) {
            return Err(DecodeError::Checksum);
        }
        let header = DatagramHeader {
            probe: kind == 2,
            token: fields.array()?,
            handle: fields.u64()?,
            seq: fields.u64()?,
            offset: fields.u32()?,
            total: fields.u32()?,
            unit: fields.u32()?,
            again: fields.u32()? & 1 != 0,
        };
        match kind {
            1 if header.length() != Some(rest.len()) => Err(DecodeError::Field),
            1 => Ok(Self { header, bytes: rest }),
            2 => Ok(Self { header, bytes: &[] }),
            _ => Err(DecodeError::Kind),
        }
    }
}
