//! What wakes the agent's thread, or is to end it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

/// Why the thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Rung,
    Tick,
    Stopped,
}

/// A time, as the kernel wants it.
pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// Whether `stopped` was written to.
pub(super) fn is_to_end(stopped: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(stopped, PollFlags::IN)];
    poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
}

/// Blocks until `stopped` is written to, where the kernel lets nothing be polled.
pub(super) fn wait_for_end(stopped: &OwnedFd) -> Woken {
    let mut word = [0; 8];
    loop {
        match rustix::io::read(stopped, &mut word) {
            Ok(_) => return Woken::Stopped,
            Err(Errno::INTR) => {}
            // Nothing can be waited for at all: once a second is no harm.
            Err(_) => sleep(Duration::from_secs(1)),
        }
    }
}
