//! Watches the process that owns a session by a pidfd, so that the kernel wakes the agent when the owner ends.

use crate::spec::Owner;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// A pidfd that becomes readable when the owner ends; `None` if it has ended already, or if its id belongs to another pid namespace.
pub(super) fn watch(owner: Owner) -> Option<OwnedFd> {
    if !owner.is_comparable() {
        return None;
    }
    let pid = Pid::from_raw(i32::try_from(owner.process.pid).ok()?)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Checked after opening, because the id may have been reused before.
    (!owner.is_gone()).then_some(fd)
}

/// Whether the owner has ended.
pub(super) fn has_ended(owner: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(owner, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
