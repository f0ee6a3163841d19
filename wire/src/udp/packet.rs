//! The CTF packets in a batch, cut to the size of a datagram.
//!
//! They are little-endian, as in a ring or a file, and a client appends them to a stream file unchanged. Each part of a cut packet
//! is a packet with its own header.

use super::DecodeError;
use tracepoint_ring::channel::{HEADER_SIZE, PACKET_MAGIC, PacketHeader};

/// Reads the header at the start of `bytes`, which must contain the whole packet. It has no padding: its size is between that of the header and
/// the length of `bytes`. The numbers of packets increase. A gap does not prove a loss, because packets are cut differently for each client.
///
/// # Errors
///
/// [`DecodeError`] if there is no complete packet, or one with padding.
pub fn packet_header(bytes: &[u8]) -> Result<PacketHeader, DecodeError> {
    if bytes.len() < HEADER_SIZE {
        return Err(DecodeError::Short);
    }
    let header = PacketHeader::parse(bytes);
    if header.magic != PACKET_MAGIC {
        return Err(DecodeError::Kind);
    }
    if header.content_bits != header.packet_bits
        || !header.packet_bits.is_multiple_of(8)
        || header.size() < HEADER_SIZE as u64
    {
        return Err(DecodeError::Field);
    }
    if header.size() > bytes.len() as u64 {
        return Err(DecodeError::Short);
    }
    Ok(header)
}

/// Iterates over the packets of a batch: the header and all bytes of each. Ends after a malformed packet.
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
    type Item = Result<(PacketHeader, &'a [u8]), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        Some(packet_header(rest).and_then(|header| {
            let (packet, rest) = rest.split_at_checked(header.size() as usize).ok_or(DecodeError::Short)?;
            self.rest = rest;
            Ok((header, packet))
        }))
    }
}
