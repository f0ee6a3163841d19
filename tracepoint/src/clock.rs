//! The clock: nanoseconds on the axis of `CLOCK_MONOTONIC`, which all processes of a machine share.

/// The time now, in ns since an arbitrary point that is the same for all processes since the machine booted.
#[cfg(posix)]
#[inline]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result. The call cannot fail for this clock, and is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The time now, in ns since the first call: there is no clock that processes share on this target.
#[cfg(not(posix))]
pub fn now() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
