//! The duration of a run.

use std::time::Duration;

/// The lengths and sizes of loads.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// How long a program is idle before each load.
    pub(crate) pause: Duration,
    /// The duration of a steady load.
    pub(crate) steady: Duration,
    /// The steps of a steady load, in events per second.
    pub(crate) rates: &'static [u64],
    /// The duration of a load without a pause.
    pub(crate) flat: Duration,
    /// The steps of a burst.
    pub(crate) bursts: &'static [u64],
    /// The rates at which processor time is measured, and for how long.
    pub(crate) costs: [(u64, Duration); 3],
    /// How long a consumer has to finish deferred work, which counts as its processor time.
    pub(crate) rest: Duration,
    /// For how long the wake-ups of an idle program are counted.
    pub(crate) idle: Duration,
}

const MS: fn(u64) -> Duration = Duration::from_millis;

impl Plan {
    pub(crate) fn whole() -> Self {
        Self {
            rounds: 3,
            pause: MS(1_000),
            steady: MS(1_500),
            rates: &[
                250_000, 500_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000,
                8_000_000, 10_000_000, 12_000_000, 16_000_000, 20_000_000, 25_000_000, 30_000_000, 40_000_000,
            ],
            flat: MS(1_000),
            bursts: &[
                10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 150_000, 200_000, 300_000, 400_000, 600_000, 800_000,
                1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000,
            ],
            costs: [(10_000, MS(4_000)), (100_000, MS(2_000)), (1_000_000, MS(1_000))],
            rest: MS(700),
            idle: MS(3_000),
        }
    }

    pub(crate) fn quick() -> Self {
        Self {
            rounds: 1,
            pause: MS(100),
            steady: MS(200),
            rates: &[500_000, 1_000_000, 4_000_000],
            flat: MS(100),
            bursts: &[10_000, 40_000, 80_000],
            costs: [(10_000, MS(300)), (100_000, MS(200)), (1_000_000, MS(100))],
            rest: MS(100),
            idle: MS(300),
        }
    }
}
