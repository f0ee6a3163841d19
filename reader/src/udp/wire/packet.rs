//! The CTF packets in a batch, cut to the size of a datagram.
//!
//! They are little-endian, as in a ring or a file, and a client appends them to a stream file unchanged. Each part of a packet that was cut
//! is a packet with its own header.

use super::Malformed;
use super::bytes::array_at;

/// The size of the header in bytes, which is the offset of the first record.
pub const HEADER: usize = 96;
/// The first four bytes.
const MAGIC: [u8; 4] = [0xc1, 0x1f, 0xfc, 0xc1];

/// The header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeader {
    /// The trace's uuid.
    pub uuid: [u8; 16],
    /// The stream class.
    pub class: u32,
    /// The stream instance.
    pub instance: u64,
    /// Its begin, in nanoseconds of the trace's clock.
    pub begin: u64,
    /// Its end.
    pub end: u64,
    /// Its size in bytes, header included. It has no padding.
    pub size: usize,
    /// Its number in the stream. The numbers rise. A gap does not prove a loss, because packets are cut differently for each client.
    pub number: u64,
    /// Events that the stream had discarded when the packet was closed.
    pub discarded: u64,
    /// The thread.
    pub tid: u32,
    /// Events of the stream before this packet.
    pub events_before: u64,
}

impl PacketHeader {
    /// The bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(&MAGIC);
        out[4..20].copy_from_slice(&self.uuid);
        out[20..24].copy_from_slice(&self.class.to_le_bytes());
        let bits = self.size as u64 * 8;
        let words = [self.instance, self.begin, self.end, bits, bits, self.number, self.discarded];
        for (word, place) in words.into_iter().zip(out[24..80].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out[80..84].copy_from_slice(&self.tid.to_le_bytes());
        out[88..96].copy_from_slice(&self.events_before.to_le_bytes());
        out
    }

    /// Reads the header at the start of `bytes`, which contain the whole packet: `size` is between [`HEADER`] and their length.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is no whole packet, or one with padding.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if array_at(bytes, 0)? != MAGIC {
            return Err(Malformed::Kind);
        }
        let word = |at| array_at(bytes, at).map(u64::from_le_bytes);
        let (content, packet) = (word(48)?, word(56)?);
        let size = usize::try_from(packet / 8).map_err(|_| Malformed::Short)?;
        if content != packet || packet % 8 != 0 || size < HEADER {
            return Err(Malformed::Field);
        }
        if size > bytes.len() {
            return Err(Malformed::Short);
        }
        Ok(Self {
            uuid: array_at(bytes, 4)?,
            class: u32::from_le_bytes(array_at(bytes, 20)?),
            instance: word(24)?,
            begin: word(32)?,
            end: word(40)?,
            size,
            number: word(64)?,
            discarded: word(72)?,
            tid: u32::from_le_bytes(array_at(bytes, 80)?),
            events_before: word(88)?,
        })
    }
}

/// Iterates over the packets of a batch: the header and all bytes of each. A malformed packet is the last.
#[derive(Clone, Debug)]
pub struct CtfPackets<'a> {
    rest: &'a [u8],
}

impl<'a> CtfPackets<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for CtfPackets<'a> {
    type Item = Result<(PacketHeader, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        Some(PacketHeader::decode(rest).and_then(|header| {
            let (packet, rest) = rest.split_at_checked(header.size).ok_or(Malformed::Short)?;
            self.rest = rest;
            Ok((header, packet))
        }))
    }
}
