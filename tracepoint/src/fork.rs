//! What a child process must forget.
//!
//! After fork the child has one thread, but a copy of the whole table of threads: sections that were open in other threads
//! would stay open for ever, and a waiter in the child would never return. The handlers registered here take the control lock
//! around the fork, and in the child reset every slot but that of the thread that forked and detach the channels (their rings
//! belong to the parent: what the child fires into them is counted as `not_attached`).
//!
//! A child made by a raw `clone` system call runs no handlers; such a child must `exec`, as the C library asks of it anyway.

#[cfg(posix)]
pub(crate) fn prepare() {
    // SAFETY: the three handlers take nothing, return nothing, and only use what this crate owns.
    // A failure (out of memory) leaves the child without the reset; there is nobody to tell.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
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
