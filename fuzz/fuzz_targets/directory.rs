//! The directory of a process as one input.

/// The metadata (the text up to the first NUL), a first part (preceded by its length in two bytes), and the rest.
pub fn parts(bytes: &[u8]) -> Option<[&[u8]; 3]> {
    let end = bytes.iter().position(|b| *b == 0)?;
    let (metadata, rest) = bytes.split_at(end);
    let (length, rest) = rest[1..].split_first_chunk()?;
    let (first, last) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    Some([metadata, first, last])
}
