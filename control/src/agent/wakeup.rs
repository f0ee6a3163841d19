//! Waiting of the agent's thread, and its stop request.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

/// Why the thread woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakeup {
    Rung,
    Tick,
    Stopped,
}

/// Converts a duration for `poll`.
pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// Whether the agent is to stop, without blocking.
pub(super) fn stop_requested(stopped: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(stopped, PollFlags::IN)];
    poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
}

/// Blocks until `stopped` is written to; used where `poll` fails.
pub(super) fn wait_for_stop(stopped: &OwnedFd) -> Wakeup {
    let mut word = [0; 8];
    loop {
        match rustix::io::read(stopped, &mut word) {
            Ok(_) => return Wakeup::Stopped,
            Err(Errno::INTR) => {}
            // The read fails as well; retry once a second.
            Err(_) => sleep(Duration::from_secs(1)),
        }
    }
}
