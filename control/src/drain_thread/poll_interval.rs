//! How long the drain sleeps between two rounds: so long that rings get about a quarter full meanwhile.
//!
//! Fuller rings shorten the pause in proportion; emptier rings lengthen it by an eighth per round, because events come in bursts after a
//! quiet time. If a round finds a ring half full or more, the next one follows without a pause.

use std::time::Duration;
use tracepoint_sinks::Drained;

/// Bounds of the pause.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);
/// The pause before the first round.
const FIRST: Duration = Duration::from_millis(10);
/// The targeted fill level of the rings in percent, and the level from which there is no pause.
const AIM: u32 = 25;
const TOO_FULL: u32 = 50;
/// Number of rounds within the time that a waiting event waits for the drain.
const ROUNDS_PER_WAIT: u32 = 4;

/// The pauses of one drain.
#[derive(Debug)]
pub(crate) struct PollInterval {
    pause: Duration,
    shortest: Duration,
    longest: Duration,
}

impl PollInterval {
    /// For a drain; `max_wait` is how long events wait for it, if they do.
    pub(crate) fn new(max_wait: Option<Duration>) -> Self {
        let longest =
            max_wait.map_or(LONGEST, |wait| (wait / ROUNDS_PER_WAIT).clamp(Duration::from_millis(1), LONGEST));
        Self { pause: FIRST.min(longest), shortest: SHORTEST.min(longest), longest }
    }

    /// The pause until the next round.
    pub(crate) const fn pause(&self) -> Duration {
        self.pause
    }

    /// The pause after a round. It is zero for full rings, unless the round moved nothing.
    pub(crate) fn after(&mut self, round: &Drained) -> Duration {
        self.adapt(round.fullness);
        if round.fullness >= TOO_FULL && round.packets > 0 { Duration::ZERO } else { self.pause }
    }

    fn adapt(&mut self, fullness: u32) {
        self.pause = if fullness > AIM {
            (self.pause * AIM / fullness).max(self.shortest)
        } else if fullness < AIM / 2 {
            (self.pause + self.pause / 8).min(self.longest)
        } else {
            self.pause
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(fullness: u32, packets: u64) -> Drained {
        let mut round = Drained::default();
        (round.fullness, round.packets) = (fullness, packets);
        round
    }

    #[test]
    fn full_rings_shorten_the_interval() {
        let mut interval = PollInterval { pause: Duration::from_millis(80), ..PollInterval::new(None) };
        assert_eq!(interval.after(&round(40, 9)), Duration::from_millis(50));
        assert_eq!(interval.after(&round(100, 9)), Duration::ZERO);
        assert_eq!(interval.pause(), Duration::from_millis(50) / 4);
        for _ in 0..10 {
            interval.after(&round(100, 9));
        }
        assert_eq!(interval.pause(), SHORTEST);
        assert_eq!(interval.after(&round(100, 0)), SHORTEST, "nothing was there to be moved");
    }

    #[test]
    fn empty_rings_lengthen_the_interval() {
        let mut interval = PollInterval::new(None);
        let rounds = (0..1000).take_while(|_| interval.after(&round(0, 0)) < LONGEST).count();
        assert!((20..40).contains(&rounds), "{rounds}");
        assert_eq!(interval.after(&round(0, 0)), LONGEST);
        assert_eq!(interval.after(&round(AIM, 2)), LONGEST, "as it should be: nothing changes");
    }

    /// Events that wait for the drain must not wait until their timeout.
    #[test]
    fn the_wait_limit_bounds_the_interval() {
        for (max_wait, longest) in [(1, 1), (40, 10), (10_000, 200)] {
            let mut interval = PollInterval::new(Some(Duration::from_millis(max_wait)));
            (0..100).for_each(|_| interval.adapt(0));
            assert_eq!(interval.pause(), Duration::from_millis(longest));
            (0..100).for_each(|_| interval.adapt(100));
            assert_eq!(interval.pause(), Duration::from_millis(longest.min(5)));
        }
    }

    /// A steady flow of events leads to a steady pause.
    #[test]
    fn a_steady_flow_converges() {
        let mut interval = PollInterval::new(None);
        // The rings fill by one percent per millisecond.
        let fullness = |pause: Duration| pause.as_millis() as u32;
        for _ in 0..100 {
            interval.adapt(fullness(interval.pause()));
        }
        assert!((12..=28).contains(&fullness(interval.pause())), "{interval:?}");
    }
}
