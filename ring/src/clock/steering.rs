//! Computes the next line from a comparison of the counter with the clock. No clock is read here.

use super::line::{Line, SHIFT, rate_between, ticks, to_window_end};
use super::sample::ClockSample;

/// The first pause between comparisons, in ns; each pause is twice as long as the previous one, up to the longest.
const FIRST_PERIOD: u64 = 100_000_000;
const LONGEST_PERIOD: u64 = 1_000_000_000;
/// A difference above this, in ns, is corrected by a step instead of a slew.
const STEP: u64 = 1_000_000;
/// The reciprocal of the maximum slew: 500 ppm, the kernel's own limit.
const SLEW_LIMIT: u64 = 2000;
/// A reading with a larger uncertainty than this, in ns, is skipped…
const GOOD_ENOUGH: u64 = 1000;
/// …for at most this number of periods.
const MAX_SKIPPED: i64 = 4;
/// The reciprocal of the maximum plausible difference between two rates of the same counter and clock.
const PLAUSIBLE: i64 = 1000;

/// The line, and the known state of the two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steering {
    line: Line,
    last: ClockSample,
    period: u64,
    /// Set if the last comparison led to a step.
    stepped: bool,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SteeringOutcome {
    /// The line was slewed. Until now its error was at most `error` ns.
    Steered { error: u64 },
    /// The line starts anew, at the clock's time.
    Stepped,
    /// The reading was not good enough; the next one may be.
    Skipped,
}

impl Steering {
    /// Starts at a reading, with a rate that was measured before.
    pub(super) const fn begin(reading: ClockSample, rate: i64) -> Self {
        let line = Line::straight(reading.tsc, reading.ns, rate);
        Self { line, last: reading, period: FIRST_PERIOD, stepped: false }
    }

    /// The current line.
    pub(super) const fn line(&self) -> Line {
        self.line
    }

    /// The last reading that was used.
    pub(super) const fn last(&self) -> ClockSample {
        self.last
    }

    /// The number of ticks after which the next comparison is due.
    pub(super) fn due_after(&self) -> i64 {
        ticks(self.period, self.line.rate)
    }

    /// Starts anew at a reading, with the known rate. Used while no channel is open.
    pub(super) fn set(&mut self, reading: ClockSample) {
        *self = Self::begin(reading, self.line.rate);
    }

    /// Computes the next line, which takes effect at `now`, in ticks, shortly after the reading.
    pub(super) fn compare(&mut self, reading: ClockSample, now: u64) -> SteeringOutcome {
        let passed = reading.tsc.wrapping_sub(self.last.tsc).cast_signed();
        let difference = self.line.at(reading.tsc).wrapping_sub(reading.ns).cast_signed();
        let error = difference.unsigned_abs();
        let rate = rate_between(i128::from(passed), i128::from(reading.ns) - i128::from(self.last.ns));
        if reading.uncertainty > GOOD_ENOUGH && (0..self.due_after().saturating_mul(MAX_SKIPPED)).contains(&passed) {
            return SteeringOutcome::Skipped;
        }
        if error > STEP {
            // A single step is a jump of the counter or the clock, at the same rate. Two in a row mean that the rate is wrong.
            let rate = if self.stepped { rate.unwrap_or(self.line.rate) } else { self.line.rate };
            *self = Self { stepped: true, ..Self::begin(reading, rate) };
            return SteeringOutcome::Stepped;
        }
        let rate = rate.map_or(self.line.rate, |measured| self.learn(measured, reading, passed));
        self.period = (self.period * 2).min(LONGEST_PERIOD);
        // Well after the next comparison, even if that is late, and at the end of a window: before the bend the conversion is cheaper.
        let bend = to_window_end(now, ticks(self.period * 2, rate).max(ticks(error * SLEW_LIMIT, rate)));
        let correction = -((i128::from(difference) << SHIFT) / i128::from(bend)) as i64;
        self.line = Line { base_tsc: now, base_ns: self.line.at(now), bent_rate: rate + correction, bend, rate };
        self.last = reading;
        self.stepped = false;
        SteeringOutcome::Steered { error: error + reading.uncertainty }
    }

    /// The new rate, given the rate measured over the last period. If the uncertainty of the readings explains the difference, an eighth of it is
    /// adopted, otherwise half.
    fn learn(&self, measured: i64, reading: ClockSample, passed: i64) -> i64 {
        let known = self.line.rate;
        let change = measured - known;
        if change.abs() > known / PLAUSIBLE {
            return known;
        }
        let noise = (i128::from(self.last.uncertainty + reading.uncertainty) << SHIFT) / i128::from(passed.max(1));
        known + if i128::from(change.abs()) <= noise { change / 8 } else { change / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::rate_of;
    use super::*;

    /// Two simulated clocks: 2.5 ticks per nanosecond, plus `ppb` parts in a billion.
    struct World {
        tsc: u64,
        ns: u64,
        ppb: i64,
        noise: u64,
        random: u64,
    }

    impl World {
        fn new() -> Self {
            Self { tsc: u64::MAX - 1_000_000, ns: 1 << 50, ppb: 0, noise: 0, random: 1 }
        }

        fn pass(&mut self, ns: u64) {
            let ticks = i128::from(ns) * 5 * i128::from(1_000_000_000 + self.ppb) / 2_000_000_000;
            self.tsc = self.tsc.wrapping_add_signed(ticks as i64);
            self.ns += ns;
        }

        /// Returns a reading with a pseudo-random error of up to `noise`.
        fn reading(&mut self) -> ClockSample {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let off = (self.random >> 33) % (2 * self.noise + 1);
            ClockSample { tsc: self.tsc, ns: self.ns + off - self.noise, uncertainty: self.noise }
        }

        fn rate() -> i64 {
            rate_of(2_500_000_000).expect("plausible")
        }

        /// Steers for `rounds` rounds, and returns the largest difference in the second half.
        fn follow(&mut self, steering: &mut Steering, rounds: u64) -> u64 {
            let mut worst = 0;
            for round in 0..rounds {
                let period = steering.period;
                for _ in 0..10 {
                    self.pass(period / 10);
                    if round >= rounds / 2 {
                        worst = worst.max(steering.line().at(self.tsc).abs_diff(self.ns));
                    }
                }
                let reading = self.reading();
                let before = steering.line().at(self.tsc);
                assert!(matches!(steering.compare(reading, self.tsc), SteeringOutcome::Steered { .. }));
                assert_eq!(steering.line().at(self.tsc), before, "the time jumps");
            }
            worst
        }
    }

    #[test]
    fn the_line_follows_the_clock() {
        for ppb in [0, 40, -3_000, 50_000, -200_000] {
            let mut world = World { ppb, noise: 30, ..World::new() };
            let mut steering = Steering::begin(world.reading(), World::rate());
            let worst = world.follow(&mut steering, 60);
            assert!(worst < 200, "{worst} ns at {ppb} ppb");
        }
    }

    #[test]
    fn the_line_follows_a_slewed_clock() {
        let mut world = World { noise: 30, ..World::new() };
        let mut steering = Steering::begin(world.reading(), World::rate());
        world.follow(&mut steering, 20);
        // The kernel suddenly slews its clock by 100 ppm, and later stops.
        for ppb in [100_000, 0] {
            world.ppb = ppb;
            let worst = world.follow(&mut steering, 40);
            assert!(worst < 200, "{worst} ns");
        }
    }

    #[test]
    fn a_correction_ends_by_itself() {
        // An hour without steering, at a rate that differs by 25 parts in a billion.
        let mut world = World { ppb: 25, ..World::new() };
        let mut steering = Steering::begin(world.reading(), World::rate());
        world.pass(3_600_000_000_000);
        let reading = world.reading();
        let verdict = steering.compare(reading, world.tsc);
        assert!(matches!(verdict, SteeringOutcome::Steered { error: 89_990..=90_010 }), "{verdict:?}");
        // Half of the error is gone half-way to the bend. From the bend on the line follows the clock at nearly its rate without more steering.
        let Line { base_tsc, bend, .. } = steering.line();
        let end = base_tsc.wrapping_add_signed(bend);
        assert_eq!(end % (1 << 32), 0, "the bend is at the end of a window");
        let half = bend.cast_unsigned() / 5;
        for (ns, ahead) in [(half, 45_000), (half, 0), (1_000_000_000, 0), (3_600_000_000_000, 45_000)] {
            world.pass(ns);
            let now_ahead = steering.line().at(world.tsc).wrapping_sub(world.ns).cast_signed();
            assert!(now_ahead.abs_diff(ahead) < 100, "{now_ahead} ns after {ns} ns");
        }
    }

    #[test]
    fn a_large_difference_is_a_step() {
        let mut world = World::new();
        let mut steering = Steering::begin(world.reading(), World::rate());
        // After a suspend: the counter stopped, or ran on, or started again at 0.
        for tsc in [world.tsc.wrapping_sub(77_000_000_000), world.tsc.wrapping_add(1 << 40), 0] {
            world.pass(FIRST_PERIOD);
            world.tsc = tsc;
            world.ns += 5_000_000;
            let reading = world.reading();
            assert_eq!(steering.compare(reading, world.tsc), SteeringOutcome::Stepped);
            assert_eq!((steering.line().at(world.tsc), steering.line().rate), (world.ns, World::rate()));
            assert!(world.follow(&mut steering, 4) < 1000);
        }
    }

    #[test]
    fn a_rate_that_was_wrong_is_measured_again() {
        let mut world = World::new();
        let mut steering = Steering::begin(world.reading(), World::rate() / 2);
        for _ in 0..2 {
            world.pass(FIRST_PERIOD);
            let reading = world.reading();
            assert_eq!(steering.compare(reading, world.tsc), SteeringOutcome::Stepped);
        }
        assert!(world.follow(&mut steering, 4) < 1000);
    }

    #[test]
    fn a_bad_reading_is_skipped_for_a_while() {
        let mut world = World::new();
        let mut steering = Steering::begin(world.reading(), World::rate());
        let bad = |world: &mut World| ClockSample { uncertainty: GOOD_ENOUGH + 1, ..world.reading() };
        for _ in 1..MAX_SKIPPED {
            world.pass(FIRST_PERIOD);
            assert_eq!(steering.compare(bad(&mut world), world.tsc), SteeringOutcome::Skipped);
        }
        world.pass(FIRST_PERIOD);
        assert!(
            matches!(steering.compare(bad(&mut world), world.tsc), SteeringOutcome::Steered { error } if error < GOOD_ENOUGH + 3)
        );
    }
}
