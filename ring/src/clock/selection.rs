//! Selects the clock of the process, and counts the channels that depend on it.

use super::calibration::{Calibration, TscRefused};
use super::sample::compare_clocks;
use super::source::{self, Source};
use super::steering::Steering;
use super::{fast_clock, machine, system, tsc};
use crate::update;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A clock for the events of a process.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: derived from the processor's time stamp counter if that is [trusted](trust_tsc), otherwise read by
    /// `clock_gettime`.
    #[default]
    Monotonic,
    /// `CLOCK_MONOTONIC`, always read by `clock_gettime`.
    System,
    /// `CLOCK_MONOTONIC_COARSE`: the time of the kernel's last timer tick, up to some milliseconds old, and the cheapest clock to read.
    /// `CLOCK_MONOTONIC` on systems without it.
    Coarse,
    /// No clock: every event has the time 0. Events are ordered within a stream, but not across streams.
    None,
    /// A function that returns nanoseconds.
    ///
    /// It is called on the traced threads, for each event, and in signal handlers that fire events, so it must not block,
    /// allocate, or fire events. If it panics, the time is 0. A time below the time of the last record in a ring is raised to it.
    User(fn() -> u64),
}

impl Clock {
    /// Returns whether both are the same clock.
    fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::User(one), Self::User(other)) => std::ptr::fn_addr_eq(one, other),
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }

    /// Returns whether it measures `CLOCK_MONOTONIC`.
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

/// The clock cannot be changed, because open channels use another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockInUse {
    /// The [`name`] of the other clock.
    pub clock: &'static str,
}

impl fmt::Display for ClockInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the clock cannot be changed while channels are open that use another one ({})", self.clock)
    }
}

impl std::error::Error for ClockInUse {}

/// The selected clock, and the state of the counter.
struct Selection {
    clock: Clock,
    tsc: Result<Steering, Cow<'static, str>>,
}

/// Locked only while the update lock is held, which is also held around a fork: a child never finds it locked.
static SELECTION: Mutex<Selection> = Mutex::new(Selection {
    clock: Clock::Monotonic,
    tsc: Err(Cow::Borrowed(concat!("the ", machine::counter_name!(), " has not been declared trustworthy"))),
});

/// Number of channels that use the clock. It is incremented under the update lock.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// Held by an open channel: the process keeps its clock as long as a channel is open.
#[derive(Debug)]
pub(crate) struct ClockHold(AtomicBool);

impl ClockHold {
    /// Begins the use of the clock by a channel.
    pub(crate) fn begin() -> Self {
        let _locked = update::lock_without_setup();
        USERS.fetch_add(1, Ordering::Relaxed);
        Self(AtomicBool::new(true))
    }

    /// Ends the use; further calls do nothing.
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

/// Keeps the clock synchronised with `CLOCK_MONOTONIC`. The thread that drains channels must call this several times a second; sessions
/// do so.
///
/// Does nothing unless the clock is the time stamp counter and the last comparison is old enough: 100 ms at first, finally 1 s. Not
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
    /// Puts the selected clock into use. The function is set first: readers call it as soon as the counter's line is cleared.
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
            (Clock::Monotonic, Ok(_)) => machine::NAME,
            (clock, _) => clock.name(),
        }
    }
}

/// Selects the clock for the events of the process. There is one for the whole process, because a ring cannot hold times of several clocks.
///
/// # Errors
///
/// If open channels use another clock.
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

/// The selected clock.
pub fn selected() -> Clock {
    with_selection(|selection| selection.clock)
}

/// The source of the time: `tsc` (`arch_sys_counter` on aarch64), `clock_gettime`, `coarse`, `none` or `user`.
pub fn name() -> &'static str {
    with_selection(|selection| selection.name())
}

/// Declares that the processors' time stamp counters are synchronised (Linux indicates this by using them for its own clock), with this frequency.
/// From now on [`Clock::Monotonic`] is derived from the counter, starting at the current time of `CLOCK_MONOTONIC`, and must be
/// [steered](super::steer).
///
/// If the counter is already in use, the calibration is ignored. The time is then set to `CLOCK_MONOTONIC` if no channel is open,
/// and left to the steering otherwise.
///
/// # Errors
///
/// If the counter has no constant frequency or may not be read, or if the calibration is not plausible. The clock does not change.
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

/// Declares that the time stamp counter cannot be trusted: [`Clock::Monotonic`] is read by `clock_gettime` from now on. [`describe`] shows
/// the reason.
pub fn distrust_tsc(reason: impl Into<Cow<'static, str>>) {
    let reason = reason.into();
    with_selection(|selection| {
        selection.tsc = Err(reason);
        if matches!(selection.clock, Clock::Monotonic) {
            selection.apply();
        }
    });
}

/// Measures the time stamp counter for `duration` (at least 1 ms; 10 ms give an accuracy of a few ppm, which steering improves), and
/// [trusts](trust_tsc) it. For programs without sessions, on machines whose counters are known to be synchronised.
///
/// Sleeps for that duration.
///
/// # Errors
///
/// The same as for [`Calibration::measure`].
pub fn calibrate(duration: Duration) -> Result<(), TscRefused> {
    trust_tsc(Calibration::measure(duration)?)
}

/// Describes the clock in a few words: its source, and its accuracy or the reason that the counter is not used.
pub fn describe() -> String {
    with_selection(|selection| match (selection.clock, &selection.tsc) {
        (Clock::Monotonic, Ok(_)) => {
            let steps = match tsc::steps() {
                0 => String::new(),
                steps => format!(", {steps} time jumps"),
            };
            format!("{}, error below {} ns{steps}", machine::NAME, tsc::error_bound())
        }
        (Clock::Monotonic, Err(reason)) => format!("clock_gettime ({reason})"),
        (clock, _) => clock.name().to_owned(),
    })
}
