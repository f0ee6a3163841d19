//! Big-endian integers at offsets.

use super::Malformed;

pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Malformed> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(Malformed::Short)
}

pub(super) fn u8_at(bytes: &[u8], at: usize) -> Result<u8, Malformed> {
    bytes.get(at).copied().ok_or(Malformed::Short)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Malformed> {
    array_at(bytes, at).map(u16::from_be_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    array_at(bytes, at).map(u32::from_be_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Result<u64, Malformed> {
    array_at(bytes, at).map(u64::from_be_bytes)
}

/// Checks the length of a datagram.
pub(super) fn sized(bytes: &[u8], size: usize) -> Result<(), Malformed> {
    match bytes.len() {
        length if length < size => Err(Malformed::Short),
        length if length > size => Err(Malformed::Long),
        _ => Ok(()),
    }
}

/// Offset of the checksum in the batch layout: CRC-32C of all bytes, with these four taken as 0.
pub(super) const CHECKSUM: usize = 8;

pub(super) fn checksum(datagram: &[u8]) -> u32 {
    let (before, rest) = datagram.split_at(CHECKSUM.min(datagram.len()));
    let after = rest.get(4..).unwrap_or(&[]);
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(sum, after)
}

/// Writes the checksum into a datagram that is long enough.
pub(super) fn seal(datagram: &mut [u8]) {
    let sum = checksum(datagram);
    if let Some(place) = datagram.get_mut(CHECKSUM..CHECKSUM + 4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

pub(super) fn check(datagram: &[u8]) -> Result<(), Malformed> {
    if u32_at(datagram, CHECKSUM)? == checksum(datagram) { Ok(()) } else { Err(Malformed::Checksum) }
}
