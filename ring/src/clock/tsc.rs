//! The clock made from the time stamp counter: the line in use, and its steering.

use super::fast_clock;
use super::line::Line;
use super::machine::{counter, ordered_counter};
use super::reading::compare_clocks;
use super::seqcount_latch::SeqcountLatch;
use super::steering::{Steering, SteeringOutcome};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The line in use; empty while the time comes from elsewhere. Replaced under the update lock.
static LINE: SeqcountLatch<5> = SeqcountLatch::empty();

/// When the line was last compared with the clock, in ticks, and how long that is enough; `i64::MAX`: it is not steered. Only
/// a hint, which spares those who come too early the lock.
static COMPARED: AtomicU64 = AtomicU64::new(0);
static ENOUGH: AtomicI64 = AtomicI64::new(i64::MAX);

/// See [`error_bound`] and [`steps`].
static ERROR: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);

/// The time now; `None` while it comes from elsewhere.
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

/// Whether the line is to be compared with the clock again.
pub(super) fn is_comparison_due() -> bool {
    let elapsed = counter().wrapping_sub(COMPARED.load(Ordering::Relaxed));
    // A counter that went backwards shows as a huge difference, and is compared at once.
    elapsed >= ENOUGH.load(Ordering::Relaxed).cast_unsigned()
}

/// By how much the time may differ from `CLOCK_MONOTONIC`'s, in ns: the difference at the last comparison and its uncertainty
/// together, or the resolution of the coarse clock. 0 where the time is the clock's itself, or has nothing to do with it.
pub fn error_bound() -> u64 {
    ERROR.load(Ordering::Relaxed)
}

/// How often the time had to jump, because it was more than 1 ms away from `CLOCK_MONOTONIC`: the machine slept, or was moved.
pub fn steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// Compares the clocks, and corrects the line. The update lock is held.
pub(super) fn compare(steering: &mut Steering) {
    let reading = compare_clocks();
    match steering.compare(reading, ordered_counter()) {
        SteeringOutcome::Waiting => return,
        SteeringOutcome::Steered { error } => ERROR.store(error, Ordering::Relaxed),
        SteeringOutcome::Stepped => {
            ERROR.store(reading.uncertainty, Ordering::Relaxed);
            STEPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    put_in_use(steering);
}

/// Sets the time to the clock's at once, and takes it from the counter from here on. The update lock is held.
pub(super) fn begin(steering: &mut Steering) {
    steering.set(compare_clocks());
    ERROR.store(steering.last().uncertainty, Ordering::Relaxed);
    put_in_use(steering);
}

fn put_in_use(steering: &Steering) {
    let line = steering.line();
    fast_clock::replace(&line, || LINE.publish(to_words(&line)));
    COMPARED.store(steering.last().tsc, Ordering::Relaxed);
    ENOUGH.store(steering.due_after(), Ordering::Relaxed);
}

/// Takes the time from elsewhere, whose error is `error`. The update lock is held.
pub(super) fn end(error: u64) {
    fast_clock::disable();
    LINE.clear();
    ENOUGH.store(i64::MAX, Ordering::Relaxed);
    ERROR.store(error, Ordering::Relaxed);
}
