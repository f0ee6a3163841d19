//! The clock: nanoseconds on the axis of `CLOCK_MONOTONIC`, which all processes of a machine share.
//!
//! [`now`] reads the processor's time stamp counter and turns it into that time by a straight line with a bend: one
//! multiplication, no system call, no fence. Where the counter cannot be trusted it is `clock_gettime`. [`select`] chooses
//! another clock for the whole process.
//!
//! Somebody has to say that the counter can be trusted: sessions of `tracepoint-control` ask the kernel, and call
//! [`trust_tsc`]; a program without sessions calls [`calibrate`]. From then on the line is *steered*: [`steer`] compares it
//! with `CLOCK_MONOTONIC` and bends it, so that the difference goes to zero over the next period; the time itself never jumps.
//! Only where the two are more than 1 ms apart (the machine slept, or was moved to another) the line begins anew, which
//! [`steps`] counts. A ring records no time below that of its last record, and counts what it raised.
//!
//! The counter is read without a fence: the processor may read it some tens of instructions early. An order of events that
//! the program makes by a system call, or by anything else that takes longer than that and [`error_bound`], shows in the times.

mod calibration;
mod fast_clock;
mod line;
mod machine;
mod rcu_slots;
mod reading;
mod selection;
mod seqcount_latch;
mod source;
mod steering;
mod system;
mod tsc;

pub use calibration::{Calibration, TscRefused};
pub(crate) use fast_clock::now as fast_now;
pub(crate) use line::TIME_SHIFT;
pub use line::Timestamp;
pub(crate) use selection::ClockHold;
pub use selection::describe;
pub use selection::{Clock, ClockInUse, calibrate, distrust_tsc, name, select, selected, steer, trust_tsc};
pub use tsc::{error_bound, steps};

/// The time now, in ns on the clock that is [selected]: `CLOCK_MONOTONIC`'s, unless told otherwise.
///
/// May be called in signal handlers. Cost: that of `rdtsc`; else that of `clock_gettime` and an indirect call.
#[inline]
pub fn now() -> u64 {
    match tsc::now() {
        Some(time) => time,
        None => source::now(),
    }
}
