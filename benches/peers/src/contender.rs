//! A variant in a measurement, with the account of its events.

use crate::kernel::Kernel;
use crate::variant::{Armed, Hold, Mode, Unusable, Variant};
use crate::{cpu, tally};
use std::fmt::{self, Debug, Formatter};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

/// The passes. The variants of a pass run alternately in each round.
///
/// The first pass measures variants that are off, because some libraries cannot be switched off again. Variants that change the
/// code of the program come last.
pub const PASSES: [fn(&Variant) -> bool; 4] = [
    |variant| variant.mode == Mode::Off,
    |variant| variant.mode == Mode::On && variant.hold != Hold::SampleAtTheEnd,
    |variant| variant.mode == Mode::Recorded,
    |variant| variant.mode == Mode::On && variant.hold == Hold::SampleAtTheEnd,
];

/// A variant in a measurement.
pub struct Contender {
    variant: &'static Variant,
    /// The state of the library, if it lasts for the whole pass.
    held: Option<Armed>,
    account: Account,
}

/// The events of a contender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// The number of events.
    pub events: u64,
    /// The number of events that should have reached the tally and did not.
    pub lost: u64,
}

/// A measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// The duration of the loop with its events, without arming and disarming.
    pub time: Duration,
    /// The number of events.
    pub events: u64,
}

impl Sample {
    /// Nanoseconds for one event, its share of the loop included.
    pub fn ns_per_event(&self) -> f64 {
        self.time.as_nanos() as f64 / self.events as f64
    }
}

impl Contender {
    /// Adds a variant, unless it cannot be used here.
    pub fn enter(variant: &'static Variant) -> Result<Self, Unusable> {
        let armed = (variant.arm)()?;
        let held = (variant.hold == Hold::Pass).then_some(armed);
        Ok(Self { variant, held, account: Account::default() })
    }

    /// The variant.
    pub const fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// The largest number of iterations of a kernel between arming and disarming.
    pub const fn most(&self, kernel: &Kernel) -> u64 {
        let most = self.variant.limit / kernel.events;
        if most == 0 { 1 } else { most }
    }

    /// Runs at least `iterations` of a kernel in the state to be measured.
    pub fn sample(&mut self, kernel: &Kernel, iterations: u64) -> Result<Sample, Unusable> {
        self.sample_by(iterations, self.most(kernel), |variant, now| here(variant, kernel, now, variant.limit))
    }

    /// The same without a pause, and beyond the limit of the variant: the account then shows the losses that the limit avoids.
    pub fn sustain(&mut self, kernel: &Kernel, iterations: u64) -> Result<Sample, Unusable> {
        self.sample_by(iterations, u64::MAX, |variant, now| here(variant, kernel, now, u64::MAX))
    }

    /// The same by a thread on each of `cpus` at once. Each thread runs `iterations`. The time is the mean of all threads; the
    /// events are those of one thread.
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

    /// Compares the tally with the events that should have reached it.
    fn account_for(&mut self, events: u64) {
        if self.variant.counts_losses {
            self.account.lost += events.saturating_sub(tally::take().count);
        }
    }

    /// Ends the measurement of the variant.
    pub fn leave(mut self) -> Account {
        if let Some(held) = self.held.take() {
            tally::take();
            drop(held);
            self.account_for(self.account.events);
        }
        self.account
    }
}

/// The events of one run in the measured state.
struct Run {
    /// The duration of the measured events.
    time: Duration,
    /// The number of measured events.
    measured: u64,
    /// The number of all events: on all threads, warm-up included.
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

/// Runs a kernel on a thread on each of `cpus`. The threads begin together after all have warmed up.
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
                    // A thread that ends its events must not disturb the others.
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

/// The numbers of iterations that warm up and that are measured: together at most the limit, of which the warm-up is at most half.
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
