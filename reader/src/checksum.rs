//! The checksums of packets.
//!
//! A packet gets its checksum when it leaves its ring, and keeps it in outputs, copies and conversions. It is the CRC-32C
//! of all `packet_size` bytes, padding included, with the four bytes of the checksum taken as 0. These bytes lie in the alignment between `tid`
//! and `events_before`, so that viewers do not print them. Code that changes a packet, such as recovery and the UDP server, checks it first and
//! then computes a new checksum.
//!
//! 0 means no checksum: the packet has not left its ring, or was written by a version without checksums. A CRC with fewer than two bits set is stored
//! inverted, so that no single flipped bit turns a checksum into 0.

use crate::metadata::types::ByteOrder;
use crate::metadata::{Metadata, StreamClass};
use crate::record::sizes;
use crate::source::Source;
use std::io;
use tracepoint_ring::channel::{CHECKSUM, HEADER_SIZE};

/// Number of bytes of a packet read at once.
const STEP: usize = 64 << 10;
/// Padding bytes.
static ZEROS: [u8; 4 << 10] = [0; 4 << 10];

/// Result of comparing a packet with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumResult {
    /// The bytes match the checksum.
    Good,
    /// The packet has no checksum.
    None,
    /// The bytes do not match: the stored checksum, and the checksum of the bytes.
    Wrong(u32, u32),
}

impl ChecksumResult {
    /// Compares the stored checksum with the computed one.
    const fn compare(stored: u32, made: u32) -> Self {
        match stored {
            0 => Self::None,
            _ if stored == made => Self::Good,
            _ => Self::Wrong(stored, made),
        }
    }

    /// True if the bytes have changed.
    pub const fn is_wrong(self) -> bool {
        matches!(self, Self::Wrong(..))
    }

    /// The reason why the packet is damaged, if it is.
    pub(crate) fn damage(self) -> Option<String> {
        match self {
            Self::Good | Self::None => None,
            Self::Wrong(stored, made) => Some(format!(
                "its bytes have changed since it left its ring: its checksum is {stored:#010x}, and theirs {made:#010x}"
            )),
        }
    }
}

/// A checksum in computation.
#[derive(Clone, Copy, Debug)]
struct Sum(u32);

impl Sum {
    /// Starts the checksum of a packet; `first` is its beginning, at least the header.
    fn begin(first: &[u8]) -> Self {
        let (before, rest) = first.split_at(CHECKSUM);
        let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
        Self(crc32c::crc32c_append(sum, &rest[4..]))
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    const fn finish(self) -> u32 {
        if self.0.count_ones() < 2 { !self.0 } else { self.0 }
    }
}

/// The checksum of a packet; 0 if it has no header.
pub fn checksum(packet: &[u8]) -> u32 {
    padded_checksum(packet, 0)
}

fn padded_checksum(packet: &[u8], padding: usize) -> u32 {
    if packet.len() < HEADER_SIZE {
        return 0;
    }
    let mut sum = Sum::begin(packet);
    let mut left = padding;
    while left > 0 {
        let part = left.min(ZEROS.len());
        sum.add(&ZEROS[..part]);
        left -= part;
    }
    sum.finish()
}

/// Writes its checksum into a packet.
pub fn seal(packet: &mut [u8]) {
    let sum = checksum(packet);
    if let Some(place) = packet.get_mut(CHECKSUM..CHECKSUM + 4) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}

/// Writes its checksum into a packet, and returns the packet.
pub fn sealed<P: AsMut<[u8]>>(mut packet: P) -> P {
    seal(packet.as_mut());
    packet
}

/// Checks a packet.
pub fn check(packet: &[u8]) -> ChecksumResult {
    check_padded(packet, 0)
}

/// Checks a packet that is followed by `padding` zero bytes, which are not in memory.
pub fn check_padded(packet: &[u8], padding: usize) -> ChecksumResult {
    match stored(packet) {
        0 => ChecksumResult::None,
        stored => ChecksumResult::compare(stored, padded_checksum(packet, padding)),
    }
}

/// Checks the packet of `size` bytes at `offset` of a source; `None` if it is incomplete.
pub(crate) fn check_at(source: &mut impl Source, offset: u64, size: u64) -> io::Result<Option<ChecksumResult>> {
    let part = |at: u64| (size - at).min(STEP as u64) as usize;
    if size < HEADER_SIZE as u64 {
        return Ok(Some(ChecksumResult::None));
    }
    let Some(first) = source.bytes(offset, part(0))?.get(..part(0)) else { return Ok(None) };
    let stored = stored(first);
    if stored == 0 {
        return Ok(Some(ChecksumResult::None));
    }
    let (mut sum, mut at) = (Sum::begin(first), part(0) as u64);
    while at < size {
        let Some(bytes) = source.bytes(offset + at, part(at))?.get(..part(at)) else { return Ok(None) };
        sum.add(bytes);
        at += part(at) as u64;
    }
    Ok(Some(ChecksumResult::compare(stored, sum.finish())))
}

fn stored(packet: &[u8]) -> u32 {
    packet.get(CHECKSUM..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// True if packets of this class, with headers of `header_bits` bits, can have checksums: they have the layout written by the tracer.
pub(crate) fn has_place(metadata: &Metadata, class: &StreamClass, header_bits: u64) -> bool {
    header_bits == HEADER_SIZE as u64 * 8
        && metadata.byte_order() == ByteOrder::Little
        && sizes::has_tracer_header(metadata)
        && sizes::has_tracer_context(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(length: usize) -> Vec<u8> {
        let mut packet: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
        seal(&mut packet);
        packet
    }

    #[test]
    fn every_flip_is_found() {
        let good = packet(200);
        assert_eq!(check(&good), ChecksumResult::Good);
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(check(&bad), ChecksumResult::Wrong(..)), "bit {bit}");
        }
    }

    #[test]
    fn a_packet_in_a_file_is_checked_in_parts() -> io::Result<()> {
        for length in [96, 97, STEP - 1, STEP, STEP + 1, 3 * STEP + 5] {
            let mut file = vec![7; 11];
            file.extend(packet(length));
            let size = length as u64;
            assert_eq!(check_at(&mut &file[..], 11, size)?, Some(ChecksumResult::Good), "{length}");
            assert_eq!(check_at(&mut &file[..], 11, size + 1)?, None, "it is cut off");
            *file.last_mut().expect("a byte") ^= 1;
            assert!(matches!(check_at(&mut &file[..], 11, size)?, Some(ChecksumResult::Wrong(..))), "{length}");
        }
        Ok(())
    }

    #[test]
    fn padding_need_not_be_in_memory() {
        for padding in [0, 1, ZEROS.len(), 2 * ZEROS.len() + 5] {
            let mut whole = packet(200);
            whole.resize(200 + padding, 0);
            seal(&mut whole);
            assert_eq!(check_padded(&whole[..200], padding), ChecksumResult::Good, "{padding}");
            assert!(check_padded(&whole[..200], padding + 1).is_wrong(), "{padding}");
        }
    }

    #[test]
    fn no_flip_makes_a_checksum_zero() {
        for sum in std::iter::once(0).chain((0..32).map(|bit| 1 << bit)) {
            assert!(Sum(sum).finish().count_ones() > 1);
        }
        assert_eq!(Sum(0x30).finish(), 0x30);
    }
}
