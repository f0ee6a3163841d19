//! Signals: those of the program are for the program's threads.

use nix::sys::signal::{SigSet, Signal};

/// Blocks all signals on this thread but those that it makes itself, which end the program where they are blocked.
pub(super) fn block() {
    let mut theirs = SigSet::all();
    for own in [Signal::SIGBUS, Signal::SIGSEGV, Signal::SIGFPE, Signal::SIGILL] {
        theirs.remove(own);
    }
    // Should this fail, a handler runs here, as it may on any thread.
    let _ = theirs.thread_block();
}
