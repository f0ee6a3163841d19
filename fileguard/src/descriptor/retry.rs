//! Repeats calls that failed because of a closed descriptor.

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time for which a call is repeated that fails with a closed descriptor.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause in milliseconds of a thread that has found a closed descriptor, before it opens another one.
const PAUSE: u64 = 10;
/// Time in milliseconds after which a thread takes the full pause again. Before, it pauses for at most a millisecond.
const REST: u64 = 100;

/// The program has closed a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program has closed the tracer's file descriptor {0}")]
pub(super) struct ClosedFdError(pub(super) i32);

/// Repeats `call` until no descriptor is closed during the call, for at most 2 s: a program that closes all descriptors takes a while, and may be
/// preempted.
///
/// # Errors
///
/// The errors of the call.
pub fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    let mut began = None;
    loop {
        match call() {
            Err(error) if is_closed(&error) && began.get_or_insert_with(Instant::now).elapsed() < PATIENCE => pause(),
            outcome => return outcome,
        }
    }
}

/// Returns whether an error says that the program has closed a descriptor, before its check or after it.
pub fn is_closed(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<ClosedFdError>()).is_some()
        || error.raw_os_error() == Some(Errno::BADF.raw_os_error())
}

/// Waits until the program has probably closed all descriptors, and opened its own. A file that is opened earlier has a low number for a moment, and
/// the program could close and reuse the number in that moment.
pub(super) fn pause() {
    static FIRST: AtomicU64 = AtomicU64::new(0);
    let time = clock_gettime(ClockId::Monotonic);
    let now = u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000;
    // Relaxed: threads that disagree on the first one wait a little longer.
    let mut first = FIRST.load(Ordering::Relaxed);
    if now.saturating_sub(first) > REST {
        first = now;
        FIRST.store(now, Ordering::Relaxed);
    }
    sleep(Duration::from_millis((first + PAUSE).saturating_sub(now).max(1)));
}
