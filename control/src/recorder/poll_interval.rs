//! How long the recorder rests between two rounds.

use super::Moved;
use std::time::Duration;

/// The shortest pause and the longest. A process that begins to fire is seen after the longest at the latest.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(20);
/// How full rings shall be when they are looked at, in percent, and how full they are when there is no time to rest.
const AIM: u32 = 25;
const TOO_FULL: u32 = 50;
/// Where nothing hurries, it works one part in so many of the time.
const SHARE: u32 = 5;

/// The pauses.
#[derive(Debug)]
pub(super) struct PollInterval {
    pause: Duration,
}

impl PollInterval {
    pub(super) const fn new() -> Self {
        Self { pause: SHORTEST }
    }

    /// The pause before the first round.
    pub(super) const fn first(&self) -> Duration {
        self.pause
    }

    /// After a round that took so long: the pause, or none.
    pub(super) fn after(&mut self, moved: &Moved, took: Duration) -> Duration {
        let Moved { packets, fullness } = *moved;
        if fullness > AIM {
            self.pause = (self.pause * AIM / fullness).max(SHORTEST);
        } else if fullness < AIM / 2 {
            self.pause = (self.pause + self.pause / 8).min(LONGEST);
        }
        match fullness {
            TOO_FULL.. if packets > 0 => Duration::ZERO,
            AIM.. => self.pause,
            _ => self.pause.max(took * (SHARE - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_hurries_where_rings_are_full_and_rests_where_they_are_not() {
        let mut interval = PollInterval::new();
        let long = Duration::from_millis(100);
        let rounds = (0..1000).take_while(|_| interval.after(&Moved::default(), Duration::ZERO) < LONGEST).count();
        assert!((15..40).contains(&rounds), "{rounds}");
        assert_eq!(interval.after(&Moved::default(), long), long * 4, "where looking takes long, it looks less often");
        assert_eq!(interval.after(&Moved { packets: 3, fullness: 60 }, long), Duration::ZERO);
        let pause = interval.after(&Moved { packets: 0, fullness: 100 }, long);
        assert!(pause >= SHORTEST && pause < LONGEST, "nothing could be moved: {pause:?}");
    }
}
