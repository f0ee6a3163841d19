//! Transfers a text to a client in pieces, which are retransmitted from the last acknowledged byte on.

use std::ops::Range;
use std::time::{Duration, Instant};

/// The retransmission timeout.
pub(super) const RETRANSMIT: Duration = Duration::from_millis(100);
/// The window: number of pieces sent before an acknowledgement.
const AHEAD: u32 = 32;

#[derive(Clone, Copy, Debug)]
pub(super) struct TextFlow {
    acknowledged: u32,
    sent: u32,
    /// When everything unacknowledged is retransmitted.
    again: Instant,
}

impl TextFlow {
    pub(super) const fn new(now: Instant) -> Self {
        Self { acknowledged: 0, sent: 0, again: now }
    }

    pub(super) const fn acknowledged(&self) -> u32 {
        self.acknowledged
    }

    /// Records that the client has received this many bytes. A number larger than the bytes sent is ignored.
    pub(super) fn acknowledge(&mut self, bytes: u32, now: Instant) {
        if bytes > self.acknowledged && bytes <= self.sent {
            self.acknowledged = bytes;
            self.again = now + RETRANSMIT;
        }
    }

    /// Returns the next piece to send of a text of `total` bytes.
    pub(super) fn next(&mut self, total: u32, piece: u32, now: Instant) -> Option<Range<u32>> {
        if self.acknowledged == self.sent {
            self.again = now + RETRANSMIT;
        } else if now >= self.again {
            self.sent = self.acknowledged;
            self.again = now + RETRANSMIT;
        }
        let window = self.acknowledged.saturating_add(piece.saturating_mul(AHEAD));
        let end = self.sent.saturating_add(piece).min(total).min(window);
        if end <= self.sent {
            return None;
        }
        let range = self.sent..end;
        self.sent = end;
        Some(range)
    }

    /// Returns when to retransmit, while something is unacknowledged.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.acknowledged < self.sent).then_some(self.again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unacknowledged_pieces_are_sent_again() {
        let begin = Instant::now();
        let mut flow = TextFlow::new(begin);
        assert_eq!([0; 3].map(|_| flow.next(25, 10, begin)), [Some(0..10), Some(10..20), Some(20..25)]);
        assert_eq!(flow.next(25, 10, begin), None);
        flow.acknowledge(10, begin);
        assert_eq!(flow.next(25, 10, begin + RETRANSMIT / 2), None);
        assert_eq!(flow.next(25, 10, begin + RETRANSMIT), Some(10..20));
        flow.acknowledge(26, begin + RETRANSMIT);
        flow.acknowledge(25, begin + RETRANSMIT);
        assert_eq!((flow.acknowledged(), flow.deadline().is_some()), (10, true), "only what was sent");
        assert_eq!(flow.next(25, 10, begin + RETRANSMIT), Some(20..25));
        flow.acknowledge(25, begin + RETRANSMIT);
        assert_eq!((flow.acknowledged(), flow.deadline()), (25, None));
        assert_eq!(flow.next(30, 10, begin + 2 * RETRANSMIT), Some(25..30), "it has grown");
    }

    #[test]
    fn bytes_in_flight_are_bounded() {
        let begin = Instant::now();
        let mut flow = TextFlow::new(begin);
        let pieces = std::iter::from_fn(|| flow.next(u32::MAX, 1000, begin)).count();
        assert_eq!(pieces, AHEAD as usize);
    }
}
