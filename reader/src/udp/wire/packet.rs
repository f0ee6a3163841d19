//! The CTF packets in a batch, cut to the size of a datagram.
//!
//! They are little-endian, as in a ring or a file, and a client appends them to a stream file unchanged. Each part of a packet that was cut
//! is a packet with its own header.

use super::Malformed;
use crate::packet_head::{self, PacketHead};

/// The size of the header in bytes, which is the offset of the first record.
pub const HEADER: usize = packet_head::SIZE;

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
        let bits = self.size as u64 * 8;
        PacketHead {
            end: self.end,
            content: bits,
            size: bits,
            sequence: self.number,
            discarded: self.discarded,
            tid: self.tid,
            before: self.events_before,
            ..PacketHead::empty(self.uuid, self.class, self.instance, self.begin)
        }
        .bytes()
    }

    /// Reads the header at the start of `bytes`, which contain the whole packet: `size` is between [`HEADER`] and their length.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is no whole packet, or one with padding.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER {
            return Err(Malformed::Short);
        }
        let PacketHead { magic, uuid, class, instance, begin, end, content, size, sequence, discarded, tid, before } =
            PacketHead::parse(bytes);
        if magic != packet_head::MAGIC {
            return Err(Malformed::Kind);
        }
        let whole = usize::try_from(size / 8).map_err(|_| Malformed::Short)?;
        if content != size || size % 8 != 0 || whole < HEADER {
            return Err(Malformed::Field);
        }
        if whole > bytes.len() {
            return Err(Malformed::Short);
        }
        Ok(Self {
            uuid,
            class,
            instance,
            begin,
            end,
            size: whole,
            number: sequence,
            discarded,
            tid,
            events_before: before,
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
