//! The threads that this crate starts in the program.

use nix::sys::signal::{SigSet, Signal};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The program's signals are for the program's threads, but for those that this thread makes itself, which end the program where they are
/// blocked. Should this fail, a handler runs here, as it may on any thread.
pub(crate) fn leave_signals_to_the_program() {
    let mut theirs = SigSet::all();
    for own in [Signal::SIGBUS, Signal::SIGSEGV, Signal::SIGFPE, Signal::SIGILL] {
        theirs.remove(own);
    }
    let _ = theirs.thread_block();
}

/// The processor time that the calling thread has taken.
pub(crate) fn taken() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
