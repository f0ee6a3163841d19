//! Structures and texts of a payload.

use crate::Malformed;
use crate::bytes::Fields;

/// The structure of `size` bytes at the start of a payload.
pub(super) fn payload(bytes: &[u8], size: usize, kind: u32) -> Result<Fields<'_>, Malformed> {
    Fields::of(bytes, size).ok_or(Malformed::Short { kind, size: bytes.len() as u64 })
}

/// Texts of these lengths, one after the other. The lengths include terminating NULs.
pub(super) fn texts<const N: usize>(bytes: &[u8], lengths: [u32; N], kind: u32) -> Result<[String; N], Malformed> {
    let mut texts = [const { String::new() }; N];
    let mut rest = bytes;
    for (text, length) in texts.iter_mut().zip(lengths) {
        let (bytes, after) =
            rest.split_at_checked(length as usize).ok_or(Malformed::Short { kind, size: bytes.len() as u64 })?;
        *text = Fields(bytes).text(0, bytes.len());
        rest = after;
    }
    Ok(texts)
}

/// Appends a text and its NUL. A text that contains a NUL ends there for the receiver.
pub(super) fn terminated(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}
