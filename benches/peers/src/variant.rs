//! A library's event in a certain state: a row of the tables.

use crate::kernel::{Compiled, KERNELS, Kernel};
use crate::peer::none::Direct;
use crate::tally::{self, Tally};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The state of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Events are off.
    Off,
    /// Events go to the cheapest possible consumer, which keeps nothing.
    On,
    /// Events are kept as bytes.
    Recorded,
}

impl Mode {
    /// All modes, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Off, Self::On, Self::Recorded];

    /// The name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Recorded => "recorded",
        }
    }
}

/// The conditions under which recording is measured.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// The variant that stores the same fields inline behind a bare time stamp: the lower bound of recording.
    pub floor: &'static str,
    /// The number of events before the measured ones, so that memory that is reused has been touched once.
    pub warm: u64,
    /// Prepares a thread for its events in the measured state, and ends them.
    pub thread: Arm,
    /// True if a consumer drains the records, so that a run may have any length and shows losses.
    pub sustained: bool,
}

/// The duration of a state in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// For one sample: all other variants run with this library off.
    Sample,
    /// From the first sample to the last, because arming takes seconds. The state must not affect other variants.
    Pass,
    /// For one sample, after all other variants: the state changes the program permanently.
    SampleAtTheEnd,
}

/// The proof that a variant is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The variant has nothing to switch on.
    Nothing,
    /// Every event is counted.
    Hits,
    /// Every event is counted and its arguments arrive.
    Values,
}

/// The reason why a variant cannot be used here.
#[derive(Clone, Debug)]
pub struct Unusable(pub String);

impl Display for Unusable {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// A state that lasts until this is dropped. The drop adds all events recorded in it to the [`tally`].
pub struct Armed(Option<Box<dyn FnOnce()>>);

impl Armed {
    /// The initial state of a library.
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

/// Enters a state.
pub type Arm = fn() -> Result<Armed, Unusable>;

/// The initial state of a library.
pub const AS_IT_IS: Arm = || Ok(Armed::as_it_is());

/// A library's event in a certain state.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The name on the command line and in tables.
    pub name: &'static str,
    /// The state of the events.
    pub mode: Mode,
    /// The effect of an event.
    pub does: &'static str,
    /// The kernels with this library's event.
    pub kernels: Compiled,
    /// Enters the state to be measured.
    pub arm: Arm,
    /// Enters a state in which every event of this thread reaches the tally.
    pub count: Arm,
    /// The content of the tally in that state.
    pub proof: Proof,
    /// True if every event of the measured state also reaches the tally, so that losses show.
    pub counts_losses: bool,
    /// The duration of the state in a measurement.
    pub hold: Hold,
    /// The largest number of events between arming and disarming, for libraries whose buffer is unbounded or drops events when it is
    /// full.
    pub limit: u64,
    /// The conditions, for variants that record.
    pub recording: Option<Recording>,
}

impl Variant {
    /// Runs a kernel, and returns its duration. The caller has entered the state.
    pub fn time(&self, kernel: &Kernel, iterations: u64) -> Duration {
        let start = Instant::now();
        black_box(self.kernels.run(kernel, iterations));
        start.elapsed()
    }

    /// Prepares this thread for recorded events.
    pub fn on_this_thread(&self) -> Result<Armed, Unusable> {
        self.recording.map_or_else(|| Ok(Armed::as_it_is()), |recording| (recording.thread)())
    }

    /// The number of iterations before the measured ones, which fill the caches after arming.
    pub fn warm(&self, kernel: &Kernel) -> u64 {
        self.recording.map_or(16, |recording| (recording.warm / kernel.events).max(16))
    }

    /// Switches the event on and off again, and compares the events that arrived from all kernels with the expected ones.
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

/// The result of [`Variant::check`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// All events arrived while it was on, and none while it was off.
    Passed {
        /// The bytes of an event, if it was kept.
        bytes: Option<f64>,
    },
    /// The loop has no event.
    NothingToSwitch,
    /// While it was on, other events arrived than the expected ones: the figures of the variant are invalid.
    Missed {
        /// The expected events.
        expected: Tally,
        /// The events that arrived.
        arrived: Tally,
    },
    /// Events still arrived after it was switched off.
    StaysOn {
        /// Their number.
        late: u64,
    },
}

impl Check {
    /// The bytes of an event, if it was kept and its size is known.
    pub const fn bytes(self) -> Option<f64> {
        match self {
            Self::Passed { bytes } => bytes,
            _ => None,
        }
    }

    /// True if the figures of the variant are valid.
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
