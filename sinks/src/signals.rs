//! Signals are delivered to the threads of the program, not to this one.

use nix::sys::signal::{SigSet, Signal};

/// Blocks all signals on this thread except those that a fault of its own raises: blocked, these would end the program.
pub(crate) fn block() {
    let mut blocked = SigSet::all();
    for own in [Signal::SIGBUS, Signal::SIGSEGV, Signal::SIGFPE, Signal::SIGILL] {
        blocked.remove(own);
    }
    // If this fails, a handler may run on this thread, as on any other.
    let _ = blocked.thread_block();
}
