//! The watermark: the time up to which no further event will arrive.
//!
//! A ring hands over its packets when they are full, or when they have been open for half a second. Everything in the rings at the end of a round
//! of the drain has therefore arrived at the end of a later round that began long enough after it. The watermark is then the newest event seen at the
//! end of the earlier round. No clock of the trace is compared with a clock of this process.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The minimum interval between two marks.
const PAUSE: Duration = Duration::from_millis(50);

/// Computes the watermark from the events that arrived and the rounds in which they arrived.
#[derive(Debug)]
pub struct Watermark {
    /// Maximum time that a packet stays in its ring.
    packet_delay: Duration,
    /// The ends of rounds, each with the newest event at that time.
    marks: VecDeque<(Instant, i64)>,
    newest: i64,
    /// The end of the last round, which is the beginning of the next.
    last_round: Option<Instant>,
    time: i64,
}

impl Watermark {
    /// Starts without events. A packet stays in its ring for at most `packet_delay`.
    pub const fn new(packet_delay: Duration) -> Self {
        Self { packet_delay, marks: VecDeque::new(), newest: i64::MIN, last_round: None, time: i64::MIN }
    }

    /// Notes the arrival of an event with this time.
    pub fn observe(&mut self, time: i64) {
        self.newest = self.newest.max(time);
    }

    /// Notes the end of a round; returns the watermark.
    pub fn advance(&mut self, now: Instant) -> i64 {
        let began = self.last_round.replace(now).unwrap_or(now);
        let is_old = |marked: Instant| began.duration_since(marked) >= self.packet_delay;
        let old = self.marks.iter().take_while(|(marked, _)| is_old(*marked)).count();
        if let Some((_, newest)) = self.marks.drain(..old).next_back() {
            self.time = newest;
        }
        if self.marks.back().is_none_or(|(marked, _)| now.duration_since(*marked) >= PAUSE) {
            self.marks.push_back((now, self.newest));
        }
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(800);

    #[test]
    fn events_before_the_watermark_are_in_order() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut watermark = Watermark::new(DELAY);
        watermark.observe(5);
        assert_eq!(watermark.advance(at(0)), i64::MIN);
        watermark.observe(9);
        watermark.observe(7);
        assert_eq!(watermark.advance(at(750)), i64::MIN);
        // This round ended late enough, and began too early.
        assert_eq!(watermark.advance(at(2000)), i64::MIN);
        assert_eq!(watermark.advance(at(2001)), 9);
        // The watermark advances although nothing arrives.
        watermark.observe(11);
        for ms in (2100..3000).step_by(100) {
            assert_eq!(watermark.advance(at(ms)), 9, "{ms}");
        }
        assert_eq!(watermark.advance(at(3000)), 11);
    }

    #[test]
    fn marks_are_few() {
        let start = Instant::now();
        let mut watermark = Watermark::new(DELAY);
        for ms in 0..10_000 {
            watermark.advance(start + Duration::from_millis(ms));
            assert!(watermark.marks.len() < 20);
        }
    }
}
