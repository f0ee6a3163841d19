//! The interval between two rounds of the recorder.

use super::RoundResult;
use std::time::Duration;

/// The shortest and longest interval. An idle process that starts to fire is drained after the longest one at the latest.
const MIN_INTERVAL: Duration = Duration::from_millis(2);
const MAX_INTERVAL: Duration = Duration::from_millis(20);
/// The fullness of rings, in percent, that the interval aims for at each round, and the fullness from which rounds follow without a pause.
const TARGET: u32 = 25;
const TOO_FULL: u32 = 50;
/// Below the target the recorder uses at most one part in `SHARE` of a core.
const SHARE: u32 = 5;

/// The current interval.
#[derive(Debug)]
pub(super) struct PollInterval {
    pause: Duration,
}

impl PollInterval {
    pub(super) const fn new() -> Self {
        Self { pause: MIN_INTERVAL }
    }

    /// The interval before the first round.
    pub(super) const fn first(&self) -> Duration {
        self.pause
    }

    /// The interval after a round with this result that took `took`; zero if the next round is due at once.
    pub(super) fn after(&mut self, result: &RoundResult, took: Duration) -> Duration {
        let RoundResult { packets, fullness } = *result;
        if fullness > TARGET {
            self.pause = (self.pause * TARGET / fullness).max(MIN_INTERVAL);
        } else if fullness < TARGET / 2 {
            self.pause = (self.pause + self.pause / 8).min(MAX_INTERVAL);
        }
        match fullness {
            TOO_FULL.. if packets > 0 => Duration::ZERO,
            TARGET.. => self.pause,
            _ => self.pause.max(took * (SHARE - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_shrinks_for_full_rings_and_grows_for_empty_ones() {
        let mut interval = PollInterval::new();
        let long = Duration::from_millis(100);
        let rounds =
            (0..1000).take_while(|_| interval.after(&RoundResult::default(), Duration::ZERO) < MAX_INTERVAL).count();
        assert!((15..40).contains(&rounds), "{rounds}");
        assert_eq!(interval.after(&RoundResult::default(), long), long * 4, "long rounds are less frequent");
        assert_eq!(interval.after(&RoundResult { packets: 3, fullness: 60 }, long), Duration::ZERO);
        let pause = interval.after(&RoundResult { packets: 0, fullness: 100 }, long);
        assert!(pause >= MIN_INTERVAL && pause < MAX_INTERVAL, "no packet could be drained: {pause:?}");
    }
}
