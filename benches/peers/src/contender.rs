//! A variant that takes part in a measurement, with an account of its events.

use crate::kernel::Kernel;
use crate::variant::{Armed, Hold, Mode, Unusable, Variant};
use crate::{cpu, tally};
use std::fmt::{self, Debug, Formatter};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// A pass: its variants take turns in each round.
///
/// Off comes first, for some libraries keep for ever what they were given to be switched on; those that change the program
/// itself come last.
pub const PASSES: [fn(&Variant) -> bool; 4] = [
    |variant| variant.mode == Mode::Off,
    |variant| variant.mode == Mode::On && variant.hold != Hold::SampleAtTheEnd,
    |variant| variant.mode == Mode::Recorded,
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
        self.sample_by(iterations, self.most(kernel), |variant, now| here(variant, kernel, now, variant.limit))
    }

    /// The same without a pause, whatever the limit is: what it was for shows in the account then.
    pub fn sustain(&mut self, kernel: &Kernel, iterations: u64) -> Result<Sample, Unusable> {
        self.sample_by(iterations, u64::MAX, |variant, now| here(variant, kernel, now, u64::MAX))
    }

    /// The same by a thread on each of `cpus`, all at once, each of which runs so many. The time is the mean of theirs, and the
    /// events are those of one.
    pub fn sample_on(&mut self, kernel: &Kernel, iterations: u64, cpus: &[usize]) -> Result<Sample, Unusable> {
        self.sample_by(iterations, self.most(kernel), |variant, now| on_threads(variant, kernel, now, cpus))
    }

    fn sample_by(
        &mut self,
        iterations: u64,
        most: u64,
        run: impl Fn(&'static Variant, u64) -> Result<Run, Unusable>,
    ) -> Result<Sample, Unusable> {
        let mut sample = Sample::default();
        let mut left = iterations;
        while left > 0 {
            let now = left.min(most);
            left -= now;
            let armed = if self.held.is_some() {
                None
            } else {
                tally::take();
                Some((self.variant.arm)()?)
            };
            let run = run(self.variant, now)?;
            self.account.events += run.all;
            sample.time += run.time;
            sample.events += run.measured;
            if let Some(armed) = armed {
                drop(armed);
                self.account_for(run.all);
            }
        }
        Ok(sample)
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

/// What was run in one state.
struct Run {
    /// How long the measured events took.
    time: Duration,
    /// How many those were.
    measured: u64,
    /// How many there were together, with the warming up and on all threads.
    all: u64,
}

/// Runs a kernel on this thread.
fn here(variant: &Variant, kernel: &Kernel, iterations: u64, limit: u64) -> Result<Run, Unusable> {
    let _thread = variant.on_this_thread()?;
    let (warm, measured) = split(variant, kernel, iterations, limit);
    variant.time(kernel, warm);
    let time = variant.time(kernel, measured);
    Ok(Run { time, measured: measured * kernel.events, all: (warm + measured) * kernel.events })
}

/// Runs a kernel on a thread on each of `cpus`, all of which begin when all have warmed up.
fn on_threads(variant: &'static Variant, kernel: &Kernel, iterations: u64, cpus: &[usize]) -> Result<Run, Unusable> {
    let (warm, measured) = split(variant, kernel, iterations, variant.limit);
    let barrier = Barrier::new(cpus.len());
    let times: Vec<Result<Duration, Unusable>> = thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let pinned = cpu::pin_to(*cpu);
                    let thread = variant.on_this_thread();
                    variant.time(kernel, warm);
                    barrier.wait();
                    let time = variant.time(kernel, measured);
                    // The end of one thread's events is not to disturb the others'.
                    barrier.wait();
                    let _thread = thread?;
                    pinned.then_some(time).ok_or_else(|| Unusable(format!("not allowed on processor {cpu}")))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a kernel does not panic")).collect()
    });
    let times = times.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Run {
        time: times.iter().sum::<Duration>() / cpus.len() as u32,
        measured: measured * kernel.events,
        all: (warm + measured) * kernel.events * cpus.len() as u64,
    })
}

/// How many iterations warm up, and how many are measured: no more than the limit together, and the warming up no more than half.
fn split(variant: &Variant, kernel: &Kernel, iterations: u64, limit: u64) -> (u64, u64) {
    let most = limit / kernel.events;
    let warm = variant.warm(kernel).min(most / 2);
    (warm, iterations.min(most - warm).max(1))
}

impl Debug for Contender {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Contender").field("variant", &self.variant.name).finish_non_exhaustive()
    }
}
