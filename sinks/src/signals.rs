//! Keeps signals for the program away from this library's threads.

use nix::sys::signal::{SigSet, Signal};

/// Blocks all signals on this thread except those raised by its own faults, which would end the program if blocked.
pub(crate) fn block() {
    let mut blocked = SigSet::all();
    for own in [Signal::SIGBUS, Signal::SIGSEGV, Signal::SIGFPE, Signal::SIGILL] {
        blocked.remove(own);
    }
    // If this fails, a handler may run on this thread, as on any other.
    let _ = blocked.thread_block();
}
