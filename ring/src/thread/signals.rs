//! The signals of threads that this library starts: handlers are for the threads of the program.

/// The signals that a thread had blocked before [`block_signals`].
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct SignalMask(libc::sigset_t);

/// Blocks all signals on the calling thread, and on those that it starts. Synchronous fault signals stay unblocked: blocking them would end the program.
/// Returns the previous mask, or `None` if nothing has changed. Async-signal-safe.
#[doc(hidden)]
pub fn block_signals() -> Option<SignalMask> {
    // SAFETY: zeroed sets are valid; all pointers are to locals of this function, and `all` is filled before it is read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed::<libc::sigset_t>(), std::mem::zeroed::<libc::sigset_t>());
        libc::sigfillset(&raw mut all);
        for fault in [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
            libc::sigdelset(&raw mut all, fault);
        }
        let failed = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        (failed == 0).then_some(SignalMask(before))
    }
}

impl SignalMask {
    /// Makes it the mask of the calling thread again.
    pub fn restore(self) {
        // SAFETY: the set is valid, and the previous one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}
