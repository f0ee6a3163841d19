//! Wraps metadata in CTF metadata packets, which LTTng viewers require for metadata in several parts.

use tracepoint_wire::stream::LONGEST_PIECE;

/// Size of a metadata packet's header in bytes.
const HEADER: usize = 37;
const MAGIC: u32 = 0x75D1_1D57;

/// Wraps a piece of the text in packets without padding. The piece ends at the end of a declaration.
pub(super) fn packets(uuid: [u8; 16], text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + HEADER);
    for piece in text.chunks(LONGEST_PIECE) {
        let bits = ((HEADER + piece.len()) * 8) as u32;
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&uuid);
        for number in [0, bits, bits] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // No compression, encryption or checksum; version 1.8.
        out.extend_from_slice(&[0, 0, 0, 1, 8]);
        out.extend_from_slice(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_in_several_packets() {
        let text = vec![b'x'; LONGEST_PIECE + 3];
        let packets = packets([7; 16], &text);
        assert_eq!(packets.len(), text.len() + 2 * HEADER);
        let second = &packets[LONGEST_PIECE + HEADER..];
        assert_eq!(second[..4], [0x57, 0x1D, 0xD1, 0x75]);
        assert_eq!(second[24..40], [64, 1, 0, 0, 64, 1, 0, 0, 0, 0, 0, 1, 8, b'x', b'x', b'x']);
    }
}
