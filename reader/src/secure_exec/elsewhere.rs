//! Detects processes that gained rights when they were executed, on systems other than Linux. These must not trust their environment.

/// Returns whether this process acts with other ids than those of the user who started it, which only Unix has.
pub fn secure() -> bool {
    #[cfg(unix)]
    {
        use rustix::process::{getegid, geteuid, getgid, getuid};
        getuid() != geteuid() || getgid() != getegid()
    }
    #[cfg(not(unix))]
    false
}
