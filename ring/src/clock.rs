//! The clock: nanoseconds on the time axis of `CLOCK_MONOTONIC`, which all processes of a machine share.
//!
//! [`now`] reads the processor's counter (the time stamp counter of x86-64, the system counter of aarch64) and converts it by a straight line with a bend: one multiplication, no system
//! call, no fence. If the counter cannot be trusted, it calls `clock_gettime`. [`select`] selects another clock for the whole process.
//!
//! The counter is used only after the program has declared it trustworthy: sessions ask the kernel, and call
//! [`trust_tsc`]; a program without sessions calls [`calibrate`]. From then on the line is *steered*: [`steer`] compares it with
//! `CLOCK_MONOTONIC` and slews it, so that the difference is gone after the next period; the time itself never jumps. Only if the two are
//! more than 1 ms apart (after a suspend or a live migration) does the line start anew, which [`steps`] counts. A ring never records a time
//! below the time of its last record: it raises the time, and counts that.
//!
//! The counter is read without a fence, so the processor may read it some tens of instructions early. The times show the order of two
//! events if they are further apart than that and [`error_bound`], for instance if a system call separates them.

mod calibration;
mod fast_clock;
mod line;
mod machine;
mod rcu_slots;
mod sample;
mod selection;
mod seqcount_latch;
mod source;
mod steering;
mod system;
mod tsc;

pub use calibration::{Calibration, TscRefused};
pub use fast_clock::Timestamp;
pub(crate) use fast_clock::{TIME_SHIFT, now as fast_now};
pub use machine::NAME as COUNTER;
pub(crate) use selection::ClockHold;
pub use selection::describe;
pub use selection::{Clock, ClockInUse, calibrate, distrust_tsc, name, select, selected, steer, trust_tsc};
pub use tsc::{error_bound, steps};

/// The current time in ns on the [selected] clock, by default `CLOCK_MONOTONIC`.
///
/// Safe in signal handlers. Costs a reading of the counter, or a `clock_gettime` and an indirect call.
#[inline]
pub fn now() -> u64 {
    match tsc::now() {
        Some(time) => time,
        None => source::now(),
    }
}

/// The same as [`now`], inside a read-side section: computed by the shorter dependency chain of the fast path, up to 1 ns earlier than `now`. `None`
/// while the counter is not in use; [`full_now`] returns the time then.
///
/// # Safety
///
/// The caller is inside a read-side section.
#[inline(always)]
pub unsafe fn now_in_section() -> Option<u64> {
    // SAFETY: the caller's promise.
    unsafe { fast_now() }.filter(|now| *now != Timestamp::INVALID).map(Timestamp::time)
}

/// [`now`], out of line.
#[cold]
#[inline(never)]
pub fn full_now() -> u64 {
    now()
}
