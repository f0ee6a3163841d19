//! An offer of the batch layout to the client of a session: good for a while, and not to be guessed meanwhile.

use std::time::{Duration, Instant};

/// How long it is good.
const GOOD_FOR: Duration = Duration::from_secs(20);
/// How many wrong answers it takes.
const GUESSES: u8 = 16;
/// How often it is made: whoever asks more often takes numbers from the session that goes on.
const EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
pub(in crate::udp) struct Offer {
    nonce: u16,
    since: Instant,
    wrong: u8,
    /// When it was made last.
    made: Option<Instant>,
}

impl Offer {
    pub(in crate::udp) const fn new(nonce: u16, now: Instant) -> Self {
        Self { nonce, since: now, wrong: 0, made: None }
    }

    pub(in crate::udp) const fn nonce(self) -> u16 {
        self.nonce
    }

    /// Whether it may be made now.
    pub(in crate::udp) fn is_due(&self, now: Instant) -> bool {
        self.made.is_none_or(|made| now.saturating_duration_since(made) >= EVERY)
    }

    /// It was made.
    pub(in crate::udp) fn made(&mut self, now: Instant) {
        self.made = Some(now);
    }

    pub(in crate::udp) fn is_over(self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= GOOD_FOR
    }

    /// Whether who says this has seen the offer. After too many wrong answers nobody has.
    pub(in crate::udp) fn is_taken_by(&mut self, nonce: u16, now: Instant) -> bool {
        if nonce != self.nonce {
            self.wrong = self.wrong.saturating_add(1);
        }
        nonce == self.nonce && self.wrong < GUESSES && !self.is_over(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_ends_by_time_and_by_guesses() {
        let begin = Instant::now();
        let mut offer = Offer::new(7, begin);
        assert!(offer.is_taken_by(7, begin) && offer.is_taken_by(7, begin + GOOD_FOR / 2));
        assert!(!offer.is_taken_by(7, begin + GOOD_FOR) && offer.is_over(begin + GOOD_FOR));
        for _ in 1..GUESSES {
            assert!(!offer.is_taken_by(8, begin));
            assert!(offer.is_taken_by(7, begin));
        }
        assert!(!offer.is_taken_by(9, begin) && !offer.is_taken_by(7, begin));
    }

    #[test]
    fn who_asks_more_often_gets_no_more_offers() {
        let begin = Instant::now();
        let mut offer = Offer::new(7, begin);
        let mut made = 0;
        for now in (0..1000).map(|ms| begin + Duration::from_millis(ms)) {
            if offer.is_due(now) {
                offer.made(now);
                made += 1;
            }
        }
        assert_eq!(made, 10);
    }
}
