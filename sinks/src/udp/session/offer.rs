//! An offer of the batch layout to a session's client, with a nonce that is valid for a limited time and number of guesses.

use std::time::{Duration, Instant};

/// Its validity.
const VALIDITY: Duration = Duration::from_secs(20);
/// Number of wrong answers that end it.
const MAX_GUESSES: u8 = 16;
/// Minimum time between two offers: each takes a message number of the session.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
pub(in crate::udp) struct Offer {
    nonce: u16,
    since: Instant,
    wrong: u8,
    /// When it was last sent.
    made: Option<Instant>,
}

impl Offer {
    pub(in crate::udp) const fn new(nonce: u16, now: Instant) -> Self {
        Self { nonce, since: now, wrong: 0, made: None }
    }

    pub(in crate::udp) const fn nonce(self) -> u16 {
        self.nonce
    }

    /// Returns whether it may be sent now.
    pub(in crate::udp) fn is_due(&self, now: Instant) -> bool {
        self.made.is_none_or(|made| now.saturating_duration_since(made) >= PAUSE)
    }

    /// Records that it was sent.
    pub(in crate::udp) fn made(&mut self, now: Instant) {
        self.made = Some(now);
    }

    pub(in crate::udp) fn is_over(self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= VALIDITY
    }

    /// Returns whether `nonce` accepts the offer. After too many wrong answers, no nonce does.
    pub(in crate::udp) fn is_taken_by(&mut self, nonce: u16, now: Instant) -> bool {
        if nonce != self.nonce {
            self.wrong = self.wrong.saturating_add(1);
        }
        nonce == self.nonce && self.wrong < MAX_GUESSES && !self.is_over(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_expires_by_time_and_by_wrong_guesses() {
        let begin = Instant::now();
        let mut offer = Offer::new(7, begin);
        assert!(offer.is_taken_by(7, begin) && offer.is_taken_by(7, begin + VALIDITY / 2));
        assert!(!offer.is_taken_by(7, begin + VALIDITY) && offer.is_over(begin + VALIDITY));
        for _ in 1..MAX_GUESSES {
            assert!(!offer.is_taken_by(8, begin));
            assert!(offer.is_taken_by(7, begin));
        }
        assert!(!offer.is_taken_by(9, begin) && !offer.is_taken_by(7, begin));
    }

    #[test]
    fn offers_are_limited_in_rate() {
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
