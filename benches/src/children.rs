//! The processor time of child processes.
#![expect(unsafe_code, reason = "`getrusage` has no safe interface")]

use std::io;
use std::time::Duration;

/// The processor time of all child processes that have ended.
///
/// # Errors
///
/// If the kernel does not count it.
pub fn children_time() -> io::Result<Duration> {
    // SAFETY: zero is a valid value of all fields, and the kernel writes to this local only.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) != 0 {
            return Err(io::Error::last_os_error());
        }
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.cast_unsigned()) + Duration::from_micros(time.tv_usec.cast_unsigned())
    };
    Ok(duration(usage.ru_utime) + duration(usage.ru_stime))
}
