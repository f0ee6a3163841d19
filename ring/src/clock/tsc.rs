//! The clock derived from the time stamp counter: the current line, and its steering.

use super::fast_clock;
use super::line::Line;
use super::machine::{counter, ordered_counter};
use super::sample::compare_clocks;
use super::seqcount_latch::SeqcountLatch;
use super::steering::{Steering, SteeringOutcome};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The current line; empty while another clock is in use. Replaced under the update lock.
static LINE: SeqcountLatch<5> = SeqcountLatch::empty();

/// The time of the last comparison of the line with the clock, and the ticks from then until the next comparison is due; `i64::MAX` while it
/// is not steered. Only a hint: it saves early callers the lock.
static COMPARED: AtomicU64 = AtomicU64::new(0);
static DUE_AFTER: AtomicI64 = AtomicI64::new(i64::MAX);

/// See [`error_bound`] and [`steps`].
static ERROR: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);

/// The current time; `None` while another clock is in use.
#[inline(always)]
pub(super) fn now() -> Option<u64> {
    let (words, ticks) = LINE.read(counter)?;
    Some(from_words(words).at(ticks))
}

#[inline(always)]
fn from_words([base_tsc, base_ns, bent_rate, bend, rate]: [u64; 5]) -> Line {
    let (bent_rate, bend, rate) = (bent_rate.cast_signed(), bend.cast_signed(), rate.cast_signed());
    Line { base_tsc, base_ns, bent_rate, bend, rate }
}

fn to_words(line: &Line) -> [u64; 5] {
    let Line { base_tsc, base_ns, bent_rate, bend, rate } = *line;
    [base_tsc, base_ns, bent_rate.cast_unsigned(), bend.cast_unsigned(), rate.cast_unsigned()]
}

/// Returns whether the line must be compared with the clock again.
pub(super) fn is_comparison_due() -> bool {
    let elapsed = counter().wrapping_sub(COMPARED.load(Ordering::Relaxed));
    // A counter that went backwards gives a huge difference, and is compared immediately.
    elapsed >= DUE_AFTER.load(Ordering::Relaxed).cast_unsigned()
}

/// The maximum difference between [`now`](super::now) and `CLOCK_MONOTONIC`, in ns: the difference at the last comparison plus its
/// uncertainty, or the resolution of the coarse clock. 0 if the time is `CLOCK_MONOTONIC` itself, or is unrelated to it.
pub fn error_bound() -> u64 {
    ERROR.load(Ordering::Relaxed)
}

/// Number of times the time jumped because it was more than 1 ms away from `CLOCK_MONOTONIC`: after a suspend or a live migration.
pub fn steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// Compares the clocks, and corrects the line. The update lock is held.
pub(super) fn compare(steering: &mut Steering) {
    let reading = compare_clocks();
    match steering.compare(reading, ordered_counter()) {
        SteeringOutcome::Skipped => return,
        SteeringOutcome::Steered { error } => ERROR.store(error, Ordering::Relaxed),
        SteeringOutcome::Stepped => {
            ERROR.store(reading.uncertainty, Ordering::Relaxed);
            STEPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    publish(steering);
}

/// Sets the time to the clock's, and takes it from the counter from now on. The update lock is held.
pub(super) fn begin(steering: &mut Steering) {
    steering.set(compare_clocks());
    ERROR.store(steering.last().uncertainty, Ordering::Relaxed);
    publish(steering);
}

fn publish(steering: &Steering) {
    let line = steering.line();
    fast_clock::replace(&line, || LINE.publish(to_words(&line)));
    COMPARED.store(steering.last().tsc, Ordering::Relaxed);
    DUE_AFTER.store(steering.due_after(), Ordering::Relaxed);
}

/// Stops using the counter: another clock, with this error bound, is in use from now on. The update lock is held.
pub(super) fn end(error: u64) {
    fast_clock::disable();
    LINE.clear();
    DUE_AFTER.store(i64::MAX, Ordering::Relaxed);
    ERROR.store(error, Ordering::Relaxed);
}
