//! How long the drain rests between two rounds: so long that rings get a quarter full meanwhile.
//!
//! Rings that are fuller have it come back sooner, in proportion; rings that are emptier, later, by an eighth each time: what comes
//! after a quiet time comes in bursts. Half a ring in one round means that there is no time to rest at all.

use std::time::Duration;
use tracepoint_sinks::Drained;

/// The shortest pause and the longest.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);
/// The pause before the first round.
const FIRST: Duration = Duration::from_millis(10);
/// How full rings shall be when they are looked at, in percent, and how full they are when there is no time to rest.
const AIM: u32 = 25;
const TOO_FULL: u32 = 50;
/// Where events wait for the drain, it comes round so many times while they do.
const ROUNDS_OF_PATIENCE: u32 = 4;

/// The pauses of one drain.
#[derive(Debug)]
pub(crate) struct PollInterval {
    pause: Duration,
    shortest: Duration,
    longest: Duration,
}

impl PollInterval {
    /// Of a drain for which events wait so long, if they do.
    pub(crate) fn new(patience: Option<Duration>) -> Self {
        let longest = patience
            .map_or(LONGEST, |patience| (patience / ROUNDS_OF_PATIENCE).clamp(Duration::from_millis(1), LONGEST));
        Self { pause: FIRST.min(longest), shortest: SHORTEST.min(longest), longest }
    }

    /// The pause until the next round.
    pub(crate) const fn pause(&self) -> Duration {
        self.pause
    }

    /// After a round: the pause, or none. Where nothing was moved there is always one, however full the rings are.
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
    fn full_rings_are_looked_at_sooner() {
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
    fn empty_ones_are_left_alone_for_longer() {
        let mut interval = PollInterval::new(None);
        let rounds = (0..1000).take_while(|_| interval.after(&round(0, 0)) < LONGEST).count();
        assert!((20..40).contains(&rounds), "{rounds}");
        assert_eq!(interval.after(&round(0, 0)), LONGEST);
        assert_eq!(interval.after(&round(AIM, 2)), LONGEST, "as it should be: nothing changes");
    }

    /// Who waits is not kept waiting for all the time that he has.
    #[test]
    fn patience_bounds_the_pause() {
        for (patience, longest) in [(1, 1), (40, 10), (10_000, 200)] {
            let mut interval = PollInterval::new(Some(Duration::from_millis(patience)));
            (0..100).for_each(|_| interval.adapt(0));
            assert_eq!(interval.pause(), Duration::from_millis(longest));
            (0..100).for_each(|_| interval.adapt(100));
            assert_eq!(interval.pause(), Duration::from_millis(longest.min(5)));
        }
    }

    /// A steady flow is met with a steady pause.
    #[test]
    fn a_steady_flow_settles() {
        let mut interval = PollInterval::new(None);
        // One percent a millisecond.
        let fullness = |pause: Duration| pause.as_millis() as u32;
        for _ in 0..100 {
            interval.adapt(fullness(interval.pause()));
        }
        assert!((12..=28).contains(&fullness(interval.pause())), "{interval:?}");
    }
}
