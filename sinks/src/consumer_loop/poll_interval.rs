//! How long a consumer sleeps between two rounds: until the fullest ring is about a quarter full, at the rate of the last interval.
//!
//! A higher rate shortens the interval at once; a lower one at most doubles it in each round, since events come in bursts.

use std::time::Duration;

/// The shortest interval. If rings get half full sooner, rounds follow each other without a pause, or an owner wakes the consumer.
const SHORTEST: Duration = Duration::from_micros(500);
/// The fullness, in percent, that rings are to have at the next round.
const TARGET: u32 = 25;
/// The number of rounds within the time that a waiting event waits for the consumer.
const ROUNDS_PER_WAIT: u32 = 4;

/// The intervals of one consumer.
#[derive(Debug)]
pub struct PollInterval {
    pause: Duration,
    shortest: Duration,
    longest: Duration,
    /// The longest interval if no event waits.
    most: Duration,
}

impl PollInterval {
    /// Intervals up to `most`.
    pub fn new(most: Duration) -> Self {
        let shortest = SHORTEST.min(most);
        Self { pause: shortest, shortest, longest: most, most }
    }

    /// Limits the intervals to a part of the time that events wait for the consumer, if they do.
    pub fn limit_wait(&mut self, max_wait: Option<Duration>) {
        let part = |wait: Duration| (wait / ROUNDS_PER_WAIT).clamp(Duration::from_millis(1), self.most);
        self.longest = max_wait.map_or(self.most, part);
    }

    /// The interval until the next round.
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    /// After a round that began `elapsed` after the one before and found the fullest ring at `fullness` percent.
    pub fn adapt(&mut self, elapsed: Duration, fullness: u32) {
        let until_target = match fullness {
            0 => elapsed.saturating_mul(2).max(self.pause),
            _ => elapsed.saturating_mul(TARGET) / fullness,
        };
        self.pause = until_target.min(self.pause * 2).clamp(self.shortest, self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_millis(200);

    fn interval() -> PollInterval {
        PollInterval::new(LONGEST)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn idle_rings_are_left_alone_for_longer() {
        let mut interval = interval();
        let rounds = (0..100).take_while(|_| {
            interval.adapt(interval.pause(), 0);
            interval.pause() < LONGEST
        });
        assert!((5..12).contains(&rounds.count()));
        interval.adapt(Duration::from_micros(20), 0);
        assert_eq!(interval.pause(), LONGEST, "two rounds in quick succession tell nothing");
    }

    /// Whatever the interval was, the next one is as long as the rate says.
    #[test]
    fn a_burst_shortens_the_interval_at_once() {
        let mut interval = interval();
        (0..20).for_each(|_| interval.adapt(LONGEST, 0));
        interval.adapt(ms(10), 100);
        assert_eq!(interval.pause(), ms(10) / 4);
        interval.adapt(Duration::from_micros(100), 100);
        assert_eq!(interval.pause(), SHORTEST);
    }

    /// The time that a round itself takes, as in a sink that is stuck, does not lengthen the interval beyond what the rate allows.
    #[test]
    fn a_stalled_round_is_part_of_the_measured_time() {
        let mut interval = interval();
        (0..20).for_each(|_| interval.adapt(ms(2), 25));
        interval.adapt(ms(400), 100);
        assert!(interval.pause() <= ms(4), "{interval:?}");
    }

    #[test]
    fn a_steady_flow_converges() {
        for per_second in [50_u32, 1_000, 10_000] {
            let mut interval = interval();
            let fullness = |pause: Duration| (pause.as_micros() as u64 * u64::from(per_second) / 1_000_000) as u32;
            for _ in 0..100 {
                interval.adapt(interval.pause(), fullness(interval.pause()));
            }
            assert!(fullness(interval.pause()) <= 28, "{per_second}: {interval:?}");
            assert!(fullness(interval.pause()) >= 10 || interval.pause() == LONGEST, "{per_second}: {interval:?}");
        }
    }

    /// Events that wait for the consumer must not wait until their timeout. The channels of a session may change.
    #[test]
    fn the_wait_limit_bounds_the_interval() {
        let mut interval = interval();
        for (max_wait, longest) in [(Some(1), 1), (Some(40), 10), (None, 200), (Some(4), 1), (Some(10_000), 200)] {
            interval.limit_wait(max_wait.map(ms));
            (0..100).for_each(|_| interval.adapt(LONGEST, 0));
            assert_eq!(interval.pause(), ms(longest));
        }
    }
}
