//! `errno` of the calling thread, which a site does not change for the program: the program may be about to read it.

/// Runs `act`, and restores `errno`.
#[cfg(linux_kernel)]
pub(crate) fn keeping_errno<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: takes no arguments; returns the address of this thread's `errno`, valid as long as the thread runs.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid, and accessed by this thread only.
    let before = unsafe { errno.read() };
    let done = act();
    // SAFETY: as above.
    unsafe { errno.write(before) };
    done
}

/// Runs `act`: what sites call there does not change `errno`.
#[cfg(not(linux_kernel))]
pub(crate) fn keeping_errno<T>(act: impl FnOnce() -> T) -> T {
    act()
}

#[cfg(all(test, linux_kernel))]
mod tests {
    use super::*;

    #[test]
    fn errno_is_restored() {
        // SAFETY: the thread's own `errno`.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        let after = unsafe {
            *errno = 17;
            keeping_errno(|| *errno = 18);
            *errno
        };
        assert_eq!(after, 17);
    }
}
