//! A library's event in a certain state: what a row of the tables is about.

use crate::kernel::{Compiled, KERNELS, Kernel};
use crate::peer::none::Direct;
use crate::tally::{self, Tally};
use std::fmt::{self, Display, Formatter};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Whether events do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nobody wants the events.
    Off,
    /// The cheapest use of the events that there is.
    On,
}

/// How long a state lasts in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// For one sample: everybody else runs with this library off.
    Sample,
    /// From the first sample to the last, because it takes seconds to arm. It must not touch anybody else.
    Pass,
    /// For one sample, after everybody else has finished: being on once changes the program for good.
    SampleAtTheEnd,
}

/// What can be proved of a variant when it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// There is nothing to switch on.
    Nothing,
    /// Every event is counted.
    Hits,
    /// Every event is counted and its arguments arrive.
    Values,
}

/// Why a variant cannot be used here.
#[derive(Clone, Debug)]
pub struct Unusable(pub String);

impl Display for Unusable {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// A state that lasts until this is dropped. What was recorded in it has reached the [`tally`] by then.
pub struct Armed(Option<Box<dyn FnOnce()>>);

impl Armed {
    /// The state that a library is in by itself.
    pub const fn as_it_is() -> Self {
        Self(None)
    }

    /// A state that `leave` ends.
    pub fn until(leave: impl FnOnce() + 'static) -> Self {
        Self(Some(Box::new(leave)))
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if let Some(leave) = self.0.take() {
            leave();
        }
    }
}

/// Brings about a state.
pub type Arm = fn() -> Result<Armed, Unusable>;

/// The state that a library is in by itself.
pub const AS_IT_IS: Arm = || Ok(Armed::as_it_is());

/// A library's event in a certain state.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// What it is called on the command line and in tables.
    pub name: &'static str,
    /// Off or on.
    pub mode: Mode,
    /// What happens to an event.
    pub does: &'static str,
    /// The kernels with this library's event.
    pub kernels: Compiled,
    /// Brings about the state to be measured.
    pub arm: Arm,
    /// Brings about a state in which every event reaches the tally.
    pub count: Arm,
    /// What the tally shows then.
    pub proof: Proof,
    /// Whether every event of the measured state reaches the tally, too, so that losses show.
    pub tells: bool,
    /// How long its state lasts in a measurement.
    pub hold: Hold,
    /// How many events fit between arming and disarming: a library that buffers without a bound of its own, or drops what
    /// exceeds it, gets no more than this.
    pub limit: u64,
}

impl Variant {
    /// Runs a kernel, and times it. The state is the caller's business.
    pub fn time(&self, kernel: &Kernel, iterations: u64) -> Duration {
        let start = Instant::now();
        black_box(self.kernels.run(kernel, iterations));
        start.elapsed()
    }

    /// Switches the event on once and off again, and compares what arrived from all kernels with what should have.
    pub fn check(&self) -> Result<Check, Unusable> {
        const ITERATIONS: u64 = 40;
        if self.proof == Proof::Nothing {
            return Ok(Check::NothingToSwitch);
        }
        let run = |kernels: &Compiled| {
            for kernel in &KERNELS {
                black_box(kernels.run(kernel, ITERATIONS));
            }
        };
        tally::take();
        run(&Compiled::of::<Direct>());
        let mut expected = tally::take();
        if self.proof == Proof::Hits {
            expected.sum = 0;
        }
        let armed = (self.count)()?;
        run(&self.kernels);
        drop(armed);
        let arrived = tally::take();
        run(&self.kernels);
        let late = tally::take().count;
        Ok(match (arrived == expected, late) {
            (true, 0) => Check::Passed,
            (true, late) => Check::StaysOn { late },
            (false, _) => Check::Missed { expected, arrived },
        })
    }
}

/// What [`Variant::check`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// On, everything arrived; off again, nothing.
    Passed,
    /// A loop without an event.
    NothingToSwitch,
    /// On, something else arrived than should have: the variant does not measure what it says.
    Missed {
        /// What should have arrived.
        expected: Tally,
        /// What did.
        arrived: Tally,
    },
    /// Off again, events still arrived.
    StaysOn {
        /// How many.
        late: u64,
    },
}

impl Check {
    /// Whether the variant may be believed.
    pub fn holds(self) -> bool {
        matches!(self, Self::Passed | Self::NothingToSwitch)
    }
}

impl Display for Check {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => formatter.write_str("hits when on, silent when off"),
            Self::NothingToSwitch => formatter.write_str("nothing to switch on"),
            Self::Missed { expected, arrived } => write!(formatter, "expected {expected:?}, {arrived:?} arrived"),
            Self::StaysOn { late } => write!(formatter, "{late} events after switching off"),
        }
    }
}
