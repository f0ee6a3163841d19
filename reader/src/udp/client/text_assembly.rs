//! Assembles texts that arrive in pieces: the metadata and the account.

use std::collections::BTreeMap;
use tracepoint_wire::udp::Text;

/// Maximum size of the pieces kept after a gap, in bytes.
const MAX_APART: usize = 1 << 20;

/// One text. Its bytes never change; pieces may arrive in any order and repeatedly.
#[derive(Debug, Default)]
pub(super) struct TextAssembly {
    /// Bytes from the beginning up to the first gap.
    length: u32,
    /// Length of the text according to the pieces.
    total: u32,
    /// Bytes before the first gap that were not taken yet.
    fresh: Vec<u8>,
    /// Pieces after the first gap.
    apart: BTreeMap<u32, Vec<u8>>,
    apart_bytes: usize,
}

impl TextAssembly {
    /// Bytes from the beginning up to the first gap.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    pub(super) fn add(&mut self, piece: &Text<'_>) {
        if piece.bytes.is_empty() {
            return;
        }
        self.total = self.total.max(piece.total);
        if piece.offset > self.length {
            let known = self.apart.get(&piece.offset).is_some_and(|other| other.len() >= piece.bytes.len());
            if !known && self.apart_bytes + piece.bytes.len() <= MAX_APART {
                self.apart_bytes += piece.bytes.len();
                let before = self.apart.insert(piece.offset, piece.bytes.to_vec());
                self.apart_bytes -= before.map_or(0, |before| before.len());
            }
            return;
        }
        self.append(piece.offset, piece.bytes);
        while let Some(entry) = self.apart.first_entry().filter(|entry| *entry.key() <= self.length) {
            let (offset, bytes) = entry.remove_entry();
            self.apart_bytes -= bytes.len();
            self.append(offset, &bytes);
        }
    }

    /// Appends a piece that begins at or before the first gap.
    fn append(&mut self, offset: u32, bytes: &[u8]) {
        let known = (self.length - offset) as usize;
        if let Some(fresh) = bytes.get(known..) {
            self.fresh.extend_from_slice(fresh);
            self.length += fresh.len() as u32;
        }
    }

    /// The bytes since the last call, once the text has no gap: an incomplete text may end within a declaration.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        (!self.fresh.is_empty() && self.length >= self.total).then(|| std::mem::take(&mut self.fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_wire::udp::TextKind;

    fn add(joined: &mut TextAssembly, offset: u32, bytes: &[u8]) {
        joined.add(&Text { kind: TextKind::Metadata, offset, total: 8, bytes });
    }

    #[test]
    fn pieces_may_be_reordered_and_repeated() {
        let mut joined = TextAssembly::default();
        add(&mut joined, 6, b"gh");
        add(&mut joined, 2, b"cde");
        assert_eq!((joined.length(), joined.take()), (0, None));
        add(&mut joined, 0, b"abc");
        assert_eq!((joined.length(), joined.take()), (5, None), "cut off");
        add(&mut joined, 0, b"abc");
        add(&mut joined, 4, b"efg");
        assert_eq!((joined.length(), joined.take()), (8, Some(b"abcdefgh".to_vec())));
        assert_eq!(joined.apart_bytes, 0);
    }

    #[test]
    fn empty_pieces_are_ignored() {
        let mut joined = TextAssembly::default();
        (1..1000).for_each(|offset| add(&mut joined, offset, b""));
        assert!(joined.apart.is_empty());
        add(&mut joined, 0, b"abcdefgh");
        assert_eq!(joined.take(), Some(b"abcdefgh".to_vec()));
        joined.add(&Text { kind: TextKind::Metadata, offset: 10, total: 12, bytes: b"kl" });
        joined.add(&Text { kind: TextKind::Metadata, offset: 8, total: 10, bytes: b"ij" });
        assert_eq!(joined.take(), Some(b"ijkl".to_vec()), "it has grown");
    }

    #[test]
    fn pieces_behind_a_gap_are_bounded() {
        let mut joined = TextAssembly::default();
        (0..MAX_APART as u32).step_by(1000).for_each(|offset| add(&mut joined, 10 + offset * 2, &[0; 2000]));
        assert!(joined.apart_bytes <= MAX_APART);
        assert_eq!(joined.apart_bytes, joined.apart.values().map(Vec::len).sum::<usize>());
    }
}
