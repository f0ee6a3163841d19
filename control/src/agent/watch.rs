//! Watches the process with which a session ends: the kernel wakes the agent when it does.

use crate::spec::Owner;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// A file that can be read when the process has ended; `None` if it is gone already, or its id means nothing here.
pub(super) fn watch(owner: Owner) -> Option<OwnedFd> {
    if !owner.is_comparable() {
        return None;
    }
    let pid = Pid::from_raw(i32::try_from(owner.process.pid).ok()?)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Looked at afterwards: the id may have been given to another one before.
    (!owner.is_gone()).then_some(fd)
}

/// Whether it has.
pub(super) fn has_ended(owner: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(owner, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
