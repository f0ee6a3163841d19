//! Which clock the process uses, and who depends on it.

use super::calibration::{Calibration, TscRefused};
use super::reading::compare_clocks;
use super::source::{self, Source};
use super::steering::Steering;
use super::{fast_clock, machine, system, tsc};
use crate::update;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A clock for the events of the process.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: made from the processor's time stamp counter where that is [trusted](trust_tsc), read by
    /// `clock_gettime` elsewhere.
    #[default]
    Monotonic,
    /// `CLOCK_MONOTONIC`, always read by `clock_gettime`.
    System,
    /// `CLOCK_MONOTONIC_COARSE`: the time of the last tick of the kernel's timer, milliseconds behind, and the cheapest clock
    /// to read. `CLOCK_MONOTONIC` where there is none.
    Coarse,
    /// No clock: every event has the time 0. The events of one stream are in their order, those of several are not.
    None,
    /// A function that gives nanoseconds.
    ///
    /// It is called on the traced threads, for each event, and in signal handlers if these fire events: it must neither wait
    /// nor allocate, nor fire events itself. If it panics the time is 0. A time below that of the last record in a ring is
    /// raised to it.
    User(fn() -> u64),
}

impl Clock {
    /// Whether the two are one clock.
    fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::User(one), Self::User(other)) => std::ptr::fn_addr_eq(one, other),
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }

    /// Whether its times are on the axis of `CLOCK_MONOTONIC`.
    pub const fn is_monotonic(self) -> bool {
        matches!(self, Self::Monotonic | Self::System | Self::Coarse)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Monotonic | Self::System => "clock_gettime",
            Self::Coarse => "coarse",
            Self::None => "none",
            Self::User(_) => "user",
        }
    }
}

/// Channels are open that have times of another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockInUse {
    /// What [`name`] gives for that clock.
    pub clock: &'static str,
}

impl fmt::Display for ClockInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the process has one clock, and channels are open that use another one ({})", self.clock)
    }
}

impl std::error::Error for ClockInUse {}

/// What was chosen, and what is known about the counter.
struct Selection {
    clock: Clock,
    tsc: Result<Steering, Cow<'static, str>>,
}

/// Only locked while the update lock is held, which fork respects: so it is never found locked in a child.
static SELECTION: Mutex<Selection> = Mutex::new(Selection {
    clock: Clock::Monotonic,
    tsc: Err(Cow::Borrowed("nobody has said that the counter can be trusted")),
});

/// How many channels are open. It grows under the update lock.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// A channel's share in the clock: as long as it lasts the process keeps the clock that it has.
#[derive(Debug)]
pub(crate) struct ClockHold(AtomicBool);

impl ClockHold {
    /// One user more.
    pub(crate) fn begin() -> Self {
        let _locked = update::lock_without_setup();
        USERS.fetch_add(1, Ordering::Relaxed);
        Self(AtomicBool::new(true))
    }

    /// One user less, however often it is called.
    pub(crate) fn end(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            USERS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs `change` on the selection, under the update lock.
fn with_selection<R>(change: impl FnOnce(&mut Selection) -> R) -> R {
    let _locked = update::lock_without_setup();
    change(&mut selection())
}

/// The update lock is held.
fn selection() -> MutexGuard<'static, Selection> {
    SELECTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the clock synchronised with `CLOCK_MONOTONIC`. To be called several times a second by the thread that drains channels; sessions
/// do so.
///
/// Does nothing unless the clock is the time stamp counter and the last comparison is old enough: 100 ms at first, 1 s in the end. Not
/// safe in signal handlers.
///
/// Cost: a few nanoseconds; a comparison takes some `clock_gettime` calls and two short locks.
pub fn steer() {
    if !tsc::is_comparison_due() {
        return;
    }
    with_selection(|selection| {
        if let (Clock::Monotonic, Ok(steering)) = (selection.clock, &mut selection.tsc) {
            tsc::compare(steering);
        }
    });
}

impl Selection {
    /// Takes the time from where the selection says. What is not the counter comes first: readers find it once that is cleared.
    fn apply(&mut self) {
        match self.clock {
            Clock::Monotonic | Clock::System => source::use_source(system::monotonic),
            Clock::Coarse => source::use_source(system::coarse),
            Clock::None => source::use_source(source::constant),
            Clock::User(source) => source::use_user(source as Source),
        }
        match (self.clock, &mut self.tsc) {
            (Clock::Monotonic, Ok(steering)) => tsc::begin(steering),
            (Clock::Coarse, _) => tsc::end(system::coarse_error()),
            (Clock::None, _) => {
                tsc::end(0);
                fast_clock::use_constant();
            }
            _ => tsc::end(0),
        }
    }

    fn name(&self) -> &'static str {
        match (self.clock, &self.tsc) {
            (Clock::Monotonic, Ok(_)) => "tsc",
            (clock, _) => clock.name(),
        }
    }
}

/// From here on the events of the process have the times of `clock`. There is one clock for the whole process: times of several
/// in one ring would be nonsense.
///
/// # Errors
///
/// If channels are open, and the process uses another clock.
pub fn select(clock: Clock) -> Result<(), ClockInUse> {
    with_selection(|selection| {
        if selection.clock.is(clock) {
            return Ok(());
        }
        if USERS.load(Ordering::Relaxed) > 0 {
            return Err(ClockInUse { clock: selection.name() });
        }
        selection.clock = clock;
        selection.apply();
        Ok(())
    })
}

/// The clock that was selected.
pub fn selected() -> Clock {
    with_selection(|selection| selection.clock)
}

/// What the time is taken from: `tsc`, `clock_gettime`, `coarse`, `none` or `user`.
pub fn name() -> &'static str {
    with_selection(|selection| selection.name())
}

/// The caller knows that the processors' time stamp counters tick together (Linux says so by using them for its own clock), and
/// how fast. From here on [`Clock::Monotonic`] is made from the counter, beginning at the clock's time now, and is to be
/// [steered](super::steer).
///
/// If that was known already, the calibration is not used. The time is then set to the clock's at once if no channel is open,
/// and otherwise left to the steering.
///
/// # Errors
///
/// If the counter does not tick evenly or may not be read, or if the calibration is none. The clock stays what it was.
pub fn trust_tsc(calibration: Calibration) -> Result<(), TscRefused> {
    let rate = machine::usable().map_err(TscRefused).and_then(|()| calibration.rate());
    with_selection(|selection| {
        let rate = rate.inspect_err(|refused| {
            if let Err(reason) = &mut selection.tsc {
                *reason = Cow::Borrowed(refused.0);
            }
        })?;
        let idle = USERS.load(Ordering::Relaxed) == 0;
        if selection.tsc.is_err() {
            selection.tsc = Ok(Steering::begin(compare_clocks(), rate));
        } else if !idle {
            return Ok(());
        }
        if matches!(selection.clock, Clock::Monotonic) {
            selection.apply();
        }
        Ok(())
    })
}

/// The caller knows that the time stamp counter cannot be trusted: [`Clock::Monotonic`] is read by `clock_gettime`.
/// [`platform`](crate::platform()) tells the reason.
pub fn distrust_tsc(reason: impl Into<Cow<'static, str>>) {
    let reason = reason.into();
    with_selection(|selection| {
        selection.tsc = Err(reason);
        if matches!(selection.clock, Clock::Monotonic) {
            selection.apply();
        }
    });
}

/// Measures the time stamp counter for `duration` (1 ms at least; 10 ms is good for some millionths, and steering does the
/// rest), and [trusts](trust_tsc) it: for programs without sessions, on machines that are known to have good counters.
///
/// Sleeps for that time.
///
/// # Errors
///
/// As [`Calibration::measure`].
pub fn calibrate(duration: Duration) -> Result<(), TscRefused> {
    trust_tsc(Calibration::measure(duration)?)
}

/// The clock in a few words: which, and how good, or why not a better one.
pub fn describe() -> String {
    with_selection(|selection| match (selection.clock, &selection.tsc) {
        (Clock::Monotonic, Ok(_)) => {
            let steps = match tsc::steps() {
                0 => String::new(),
                steps => format!(", {steps} times the time jumped"),
            };
            format!("tsc, error below {} ns{steps}", tsc::error_bound())
        }
        (Clock::Monotonic, Err(reason)) => format!("clock_gettime ({reason})"),
        (clock, _) => clock.name().to_owned(),
    })
}
