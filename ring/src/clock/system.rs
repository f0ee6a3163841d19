//! The clocks of the operating system.

/// `CLOCK_MONOTONIC`, in ns.
#[cfg(posix)]
pub(super) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_MONOTONIC` at the kernel's last timer tick, in ns.
#[cfg(linux_kernel)]
pub(super) fn coarse() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// The same as [`monotonic`]: there is no coarse clock.
#[cfg(not(linux_kernel))]
pub(super) fn coarse() -> u64 {
    monotonic()
}

/// The resolution of the coarse clock, in ns.
#[cfg(linux_kernel)]
pub(super) fn coarse_error() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result, and keeps its value should the call fail.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    nanoseconds(&time)
}

#[cfg(not(linux_kernel))]
pub(super) fn coarse_error() -> u64 {
    0
}

#[cfg(posix)]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result. The call cannot fail for these clocks, and is safe in signal handlers.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanoseconds(&time)
}

#[cfg(posix)]
fn nanoseconds(time: &libc::timespec) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Time since the first call, in ns: this target has no clock that is shared by processes.
#[cfg(not(posix))]
pub(super) fn monotonic() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
