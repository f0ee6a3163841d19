//! How long the drain rests between two rounds: so long that rings get a quarter full meanwhile.
//!
//! Rings that are fuller have it come back sooner, in proportion; rings that are emptier, later, by an eighth each time: what comes
//! after a quiet time comes in bursts. Half a ring in one round means that there is no time to rest at all.

use std::time::Duration;

/// The shortest pause and the longest.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);
/// The pause before the first round.
const FIRST: Duration = Duration::from_millis(10);
/// How full rings shall be when they are looked at, in percent, and how full they are when there is no time to rest.
const AIM: u32 = 25;
const TOO_FULL: u32 = 50;

/// The pauses of one drain.
#[derive(Debug)]
pub(super) struct Pace(Duration);

impl Pace {
    pub(super) const fn new() -> Self {
        Self(FIRST)
    }

    /// The pause until the next round.
    pub(super) const fn pause(&self) -> Duration {
        self.0
    }

    /// After a round in which the fullest ring was so full, in percent: the pause, or none.
    pub(super) fn after(&mut self, fullness: u32) -> Duration {
        self.0 = if fullness > AIM {
            (self.0 * AIM / fullness).max(SHORTEST)
        } else if fullness < AIM / 2 {
            (self.0 + self.0 / 8).min(LONGEST)
        } else {
            self.0
        };
        if fullness >= TOO_FULL { Duration::ZERO } else { self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_rings_are_looked_at_sooner() {
        let mut pace = Pace(Duration::from_millis(80));
        assert_eq!(pace.after(40), Duration::from_millis(50));
        assert_eq!(pace.after(100), Duration::ZERO);
        assert_eq!(pace.pause(), Duration::from_millis(50) / 4);
        for _ in 0..10 {
            pace.after(100);
        }
        assert_eq!(pace.pause(), SHORTEST);
    }

    #[test]
    fn empty_ones_are_left_alone_for_longer() {
        let mut pace = Pace::new();
        let rounds = (0..1000).take_while(|_| pace.after(0) < LONGEST).count();
        assert!((20..40).contains(&rounds), "{rounds}");
        assert_eq!(pace.after(0), LONGEST);
        assert_eq!(pace.after(AIM), LONGEST, "as it should be: nothing changes");
    }

    /// A steady flow is met with a steady pause.
    #[test]
    fn a_steady_flow_settles() {
        let mut pace = Pace::new();
        // One percent a millisecond.
        let fullness = |pause: Duration| pause.as_millis() as u32;
        for _ in 0..100 {
            let found = fullness(pace.pause());
            pace.after(found);
        }
        assert!((12..=28).contains(&fullness(pace.pause())), "{pace:?}");
    }
}
