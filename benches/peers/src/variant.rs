//! A library's event in a certain state: what a row of the tables is about.

use crate::kernel::{Compiled, KERNELS, Kernel};
use crate::peer::none::Direct;
use crate::tally::{self, Tally};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What becomes of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They are switched off.
    Off,
    /// They are passed to the cheapest possible consumer, which keeps nothing.
    On,
    /// Their bytes are kept.
    Recorded,
}

impl Mode {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Recorded];

    /// What it is called on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Recorded => "recorded",
        }
    }
}

/// What recording needs to be measured fairly.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// The variant that stores the same fields inline behind a bare time stamp: what no recording can go below.
    pub floor: &'static str,
    /// How many events run before those that are measured, so that memory which is used again and again has been used once.
    pub warm: u64,
    /// What a thread does before its events, and at their end, in the state to be measured.
    pub thread: Arm,
    /// Whether a consumer drains the records, so that the run can be of any length and shows losses.
    pub sustained: bool,
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

/// A state that lasts until this is dropped. All events recorded in it have reached the [`tally`] by then.
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
    /// Brings about a state in which every event of this thread reaches the tally.
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
    /// Of those that record.
    pub recording: Option<Recording>,
}

impl Variant {
    /// Runs a kernel, and times it. The state is the caller's business.
    pub fn time(&self, kernel: &Kernel, iterations: u64) -> Duration {
        let start = Instant::now();
        black_box(self.kernels.run(kernel, iterations));
        start.elapsed()
    }

    /// Makes this thread ready for events that are recorded.
    pub fn on_this_thread(&self) -> Result<Armed, Unusable> {
        self.recording.map_or_else(|| Ok(Armed::as_it_is()), |recording| (recording.thread)())
    }

    /// How many iterations of a kernel run before those that are measured: the first turns pay for what arming left cold.
    pub fn warm(&self, kernel: &Kernel) -> u64 {
        self.recording.map_or(16, |recording| (recording.warm / kernel.events).max(16))
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
        Ok(match (arrived.same_events(expected), late) {
            (true, 0) => {
                Check::Passed { bytes: (arrived.bytes > 0).then(|| arrived.bytes as f64 / arrived.count as f64) }
            }
            (true, late) => Check::StaysOn { late },
            (false, _) => Check::Missed { expected, arrived },
        })
    }
}

/// What [`Variant::check`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// On, everything arrived; off again, nothing.
    Passed {
        /// How many bytes an event took, where it was kept.
        bytes: Option<f64>,
    },
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
    /// How many bytes an event took, if it was kept and its size is known.
    pub const fn bytes(self) -> Option<f64> {
        match self {
            Self::Passed { bytes } => bytes,
            _ => None,
        }
    }

    /// Whether the variant may be believed.
    pub fn holds(self) -> bool {
        matches!(self, Self::Passed { .. } | Self::NothingToSwitch)
    }
}

impl Display for Check {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed { .. } => formatter.write_str("hits when on, silent when off"),
            Self::NothingToSwitch => formatter.write_str("nothing to switch on"),
            Self::Missed { expected, arrived } => write!(formatter, "expected {expected:?}, {arrived:?} arrived"),
            Self::StaysOn { late } => write!(formatter, "{late} events after switching off"),
        }
    }
}
