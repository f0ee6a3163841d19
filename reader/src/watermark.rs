//! The watermark: the time up to which no event is still to come.
//!
//! A ring hands over its packets when they are full, or when they have been open for half a second. So what was in the rings when a round
//! of the drain ended has come when a later round ends that began long enough after it: the newest event seen at the end of the earlier
//! round is the watermark then. No clock of the trace is compared with a clock of this process.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The pause between two marks.
const PAUSE: Duration = Duration::from_millis(50);

/// Computes the watermark from the events that have come and the rounds in which they came.
#[derive(Debug)]
pub struct Watermark {
    /// The longest time for which a packet stays in its ring.
    packet_delay: Duration,
    /// When a round ended, and the newest event by then.
    marks: VecDeque<(Instant, i64)>,
    newest: i64,
    /// When the last round ended, and the next began.
    last_round: Option<Instant>,
    time: i64,
}

impl Watermark {
    /// No event has come. A packet stays in its ring for at most `packet_delay`.
    pub const fn new(packet_delay: Duration) -> Self {
        Self { packet_delay, marks: VecDeque::new(), newest: i64::MIN, last_round: None, time: i64::MIN }
    }

    /// An event of this time has come.
    pub fn observe(&mut self, time: i64) {
        self.newest = self.newest.max(time);
    }

    /// A round has ended: the watermark.
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
        // The watermark rises although nothing comes.
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
