//! The CTF packets in a batch: those of `tracepoint`, cut to the size of a datagram.
//!
//! Little-endian, as in a ring or in a file: a client appends them to its stream file as they are. Of a packet that is cut,
//! each part has a header of its own, so that the parts are packets.

use super::Malformed;
use super::bytes::array_at;

/// The size of the header in bytes: where the first record stands.
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
    /// When it begins, in ns of the trace's clock.
    pub begin: u64,
    /// When it ends.
    pub end: u64,
    /// Its size in bytes, header included: a packet that travels has no padding.
    pub size: usize,
    /// Its number in the stream. Rises; a gap is no proof of a loss, as packets are cut differently for each client.
    pub number: u64,
    /// How many events the stream had discarded when the packet was closed.
    pub discarded: u64,
    /// The thread.
    pub tid: u32,
    /// How many events the stream had before this packet.
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

    /// Reads the header at the start of `bytes`. The whole packet is there: `size` is between [`HEADER`] and the length of `bytes`.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is no packet, or not all of it, or one with padding.
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

/// The packets of a batch, each with its header and all its bytes, header included. One that is malformed ends them.
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
