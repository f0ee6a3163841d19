//! The threads that this crate starts in the program.

use nix::sys::signal::{SigSet, Signal};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Blocks all signals on the calling thread, so that the program's own threads handle them. Synchronous fault signals stay unblocked:
/// blocking them would end the program. If this fails, a signal handler may run on this thread, as on any other.
pub(crate) fn leave_signals_to_the_program() {
    let mut blocked = SigSet::all();
    for fault in [Signal::SIGBUS, Signal::SIGSEGV, Signal::SIGFPE, Signal::SIGILL] {
        blocked.remove(fault);
    }
    let _ = blocked.thread_block();
}

/// Processor time of the calling thread.
pub(crate) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
