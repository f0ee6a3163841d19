//! Assembles a trace's account from its pieces.

use tracepoint_wire::stream::{LONGEST_PIECE, Piece, ToCollector};

/// Maximum size of an account, as for senders over the network.
const LARGEST: u64 = 64 << 20;

/// The text so far. Pieces after the complete text are ignored: they were published twice, or by others.
#[derive(Debug, Default)]
pub(super) struct AccountText {
    bytes: Vec<u8>,
    whole: Option<u64>,
    is_taken: bool,
}

impl AccountText {
    /// Adds a piece. A piece that does not continue the text is ignored.
    pub(super) fn add(&mut self, piece: &Piece<'_>, whole: u64) {
        let continues = piece.offset == self.bytes.len() as u64 && self.whole.is_none_or(|known| known == whole);
        if continues && whole <= LARGEST && !self.is_whole() {
            self.bytes.extend_from_slice(piece.bytes);
            self.whole = Some(whole);
        }
    }

    /// Returns whether the text is complete and was not taken.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_taken && self.whole == Some(self.bytes.len() as u64)
    }

    /// Takes the text, once.
    pub(super) fn take(&mut self) -> Self {
        self.is_taken = true;
        Self { bytes: std::mem::take(&mut self.bytes), whole: self.whole, is_taken: false }
    }

    /// Encodes the text as a sender's messages.
    pub(super) fn frames(&self) -> impl Iterator<Item = ToCollector<'_>> {
        let whole = self.bytes.len() as u64;
        let piece = |(number, bytes)| Piece { offset: (number * LONGEST_PIECE) as u64, bytes };
        self.bytes.chunks(LONGEST_PIECE).enumerate().map(move |it| ToCollector::Account(piece(it), whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_come_twice_or_behind_the_end_change_nothing() {
        let mut text = AccountText::default();
        let mut add = |offset, bytes: &[u8], whole| {
            text.add(&Piece { offset, bytes }, whole);
            text.is_whole()
        };
        assert!(!add(0, b"abc", 5) && !add(0, b"xyz", 5) && !add(3, b"d", 9) && !add(4, b"e", 5));
        assert!(add(3, b"de", 5) && add(0, b"other", 5) && add(5, b"", 5));
        let taken = text.take();
        let frames: Vec<_> = taken.frames().collect();
        assert_eq!(frames, [ToCollector::Account(Piece { offset: 0, bytes: b"abcde" }, 5)]);
        text.add(&Piece { offset: 0, bytes: b"other" }, 5);
        assert!(!text.is_whole(), "it is stored once");
    }
}
