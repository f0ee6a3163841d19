//! What a child process must forget.
//!
//! After fork the child has one thread, but a copy of the whole table of threads: sections that were open in other threads
//! would stay open for ever, and a waiter in the child would never return. The handlers registered here take the control lock
//! around the fork, and in the child reset every slot but that of the thread that forked and detach the channels (their rings
//! belong to the parent: what the child fires into them is counted as `not_attached`).
//!
//! They are installed before the control lock is taken for the first time, whoever takes it: a constructor inside `dlopen` may be the
//! first. (A fork that has begun by then, and is running somebody else's handlers, runs without ours.)
//!
//! A child made by a raw `clone` system call runs no handlers; such a child must `exec`, as the C library asks of it anyway.

#[cfg(posix)]
use crate::primitive::{AtomicUsize, Ordering};

/// Installs the handlers, once or more often: two threads may be the first, and a child may be forked in the middle of it, where
/// nobody would finish what one thread does for all. Handlers that run twice do no harm.
#[cfg(posix)]
pub(crate) fn prepare() {
    static INSTALLED: AtomicUsize = AtomicUsize::new(0);
    // A1: pairs with the Release store below.
    if INSTALLED.load(Ordering::Acquire) != 0 {
        return;
    }
    // SAFETY: the three handlers take nothing, return nothing, and only use what this crate owns.
    // A failure (out of memory) leaves the child without the reset; there is nobody to tell.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    // A1: whoever finds them installed, and takes the control lock, knows that a later fork runs them.
    INSTALLED.store(1, Ordering::Release);
}

#[cfg(not(posix))]
pub(crate) fn prepare() {}

#[cfg(posix)]
extern "C" fn before() {
    crate::control::around_fork::before();
}

#[cfg(posix)]
extern "C" fn in_parent() {
    crate::control::around_fork::after();
}

#[cfg(posix)]
extern "C" fn in_child() {
    crate::thread::reset_others_after_fork();
    crate::channel::detach_all_after_fork();
    crate::control::around_fork::after();
}
