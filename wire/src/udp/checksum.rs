//! The size and the checksum of a datagram.

use super::DecodeError;

/// Offset of the checksum in the batch layout: CRC-32C of all bytes, with these four taken as 0.
pub(super) const CHECKSUM: usize = 8;

/// Checks the length of a datagram.
pub(super) fn sized(bytes: &[u8], size: usize) -> Result<(), DecodeError> {
    match bytes.len() {
        length if length < size => Err(DecodeError::Short),
        length if length > size => Err(DecodeError::Long),
        _ => Ok(()),
    }
}

fn checksum(datagram: &[u8]) -> [u8; 4] {
    let (before, rest) = datagram.split_at(CHECKSUM.min(datagram.len()));
    let after = rest.get(4..).unwrap_or(&[]);
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(sum, after).to_be_bytes()
}

/// Writes the checksum into a datagram, which must be long enough.
pub(super) fn seal(datagram: &mut [u8]) {
    let sum = checksum(datagram);
    if let Some(place) = datagram.get_mut(CHECKSUM..CHECKSUM + 4) {
        place.copy_from_slice(&sum);
    }
}

pub(super) fn check(datagram: &[u8]) -> Result<(), DecodeError> {
    let sum = datagram.get(CHECKSUM..CHECKSUM + 4).ok_or(DecodeError::Short)?;
    if sum == checksum(datagram) { Ok(()) } else { Err(DecodeError::Checksum) }
}
