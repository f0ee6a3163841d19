//! A variant that takes part in a measurement, with an account of its events.

use crate::kernel::Kernel;
use crate::tally;
use crate::variant::{Armed, Hold, Mode, Unusable, Variant};
use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

/// Who meets whom: variants of one pass take turns.
///
/// Off comes first, for some libraries keep for ever what they were given to be switched on; those that change the program
/// itself come last.
pub const PASSES: [fn(&Variant) -> bool; 3] = [
    |variant| variant.mode == Mode::Off,
    |variant| variant.mode == Mode::On && variant.hold != Hold::SampleAtTheEnd,
    |variant| variant.mode == Mode::On && variant.hold == Hold::SampleAtTheEnd,
];

/// A variant that takes part in a measurement.
pub struct Contender {
    variant: &'static Variant,
    /// The state, if it lasts for the whole pass.
    held: Option<Armed>,
    account: Account,
}

/// What a contender's events came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// How many events there were.
    pub events: u64,
    /// How many of them should have reached the tally and did not.
    pub lost: u64,
}

/// A measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// How long the events took, loop included; arming and disarming are not.
    pub time: Duration,
    /// How many events there were.
    pub events: u64,
}

impl Sample {
    /// Nanoseconds for one event, its share of the loop included.
    pub fn ns_per_event(&self) -> f64 {
        self.time.as_nanos() as f64 / self.events as f64
    }
}

impl Contender {
    /// Brings a variant in, unless it cannot be used here.
    pub fn enter(variant: &'static Variant) -> Result<Self, Unusable> {
        let armed = (variant.arm)()?;
        let held = (variant.hold == Hold::Pass).then_some(armed);
        Ok(Self { variant, held, account: Account::default() })
    }

    /// The variant.
    pub const fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// How many iterations of a kernel run between arming and disarming at the most.
    pub const fn most(&self, kernel: &Kernel) -> u64 {
        let most = self.variant.limit / kernel.events;
        if most == 0 { 1 } else { most }
    }

    /// Runs at least `iterations` of a kernel in the state to be measured.
    pub fn sample(&mut self, kernel: &Kernel, iterations: u64) -> Result<Sample, Unusable> {
        let mut sample = Sample::default();
        let mut left = iterations;
        while left > 0 {
            let now = left.min(self.most(kernel));
            left -= now;
            if self.held.is_some() {
                let (time, iterations) = self.run(kernel, now);
                sample.time += time;
                sample.events += iterations * kernel.events;
                continue;
            }
            tally::take();
            let events = self.account.events;
            let armed = (self.variant.arm)()?;
            let (time, iterations) = self.run(kernel, now);
            drop(armed);
            sample.time += time;
            sample.events += iterations * kernel.events;
            self.account_for(self.account.events - events);
        }
        Ok(sample)
    }

    /// Runs a kernel; what it gives was measured, the warming up before is not.
    fn run(&mut self, kernel: &Kernel, iterations: u64) -> (Duration, u64) {
        // The first turns pay for what arming left cold: caches, pages, predictions, a library's buffers for this thread.
        let warm = iterations.min(16);
        self.variant.time(kernel, warm);
        let measured = (iterations - warm).max(1);
        let time = self.variant.time(kernel, measured);
        self.account.events += (warm + measured) * kernel.events;
        (time, measured)
    }

    /// Compares what was tallied with what should have been.
    fn account_for(&mut self, events: u64) {
        if self.variant.tells {
            self.account.lost += events.saturating_sub(tally::take().count);
        }
    }

    /// Ends its part.
    pub fn leave(mut self) -> Account {
        if let Some(held) = self.held.take() {
            tally::take();
            drop(held);
            self.account_for(self.account.events);
        }
        self.account
    }
}

impl Debug for Contender {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Contender").field("variant", &self.variant.name).finish_non_exhaustive()
    }
}
