//! Watches the process that owns a session, so that the kernel wakes the agent when the owner ends: by the session's pipe, or by a pidfd if
//! there is no pipe and the owner's id is valid here.

use fileguard::{CheckedFd, GuardedFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use tracepoint_run_dir::owner_pipe;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_session_io::owner::{is_comparable, is_gone};
use tracepoint_session_spec::Owner;

/// The owner of a session.
#[derive(Debug)]
pub(super) enum OwnerWatch {
    /// It is alive; the descriptor becomes readable when it ends.
    Alive(Arc<GuardedFd<OwnedFd>>),
    Ended,
    /// It cannot be watched.
    Unknown,
}

/// Watches the owner of the session in the directory `dir`.
pub(super) fn watch(owner: Owner, dir: &Path) -> OwnerWatch {
    let pipe = || owner_pipe::watch(&PrivateDir::open(dir).ok()?).ok();
    if let Some(pipe) = owner.pipe.then(pipe).flatten() {
        return pipe.map_or(OwnerWatch::Ended, |pipe| OwnerWatch::Alive(pipe.keep()));
    }
    if !is_comparable(&owner) {
        return OwnerWatch::Unknown;
    }
    let pid = i32::try_from(owner.process.pid).ok().and_then(Pid::from_raw);
    // Where a pidfd has no inode of its own (before Linux 6.9), the owner is checked whenever the agent is awake.
    let fd = pid.and_then(|pid| CheckedFd::of(pidfd_open(pid, PidfdFlags::empty()).ok()?).ok()).map(CheckedFd::keep);
    // Checked after opening, because the id may have been reused before.
    if is_gone(&owner) { OwnerWatch::Ended } else { fd.map_or(OwnerWatch::Unknown, OwnerWatch::Alive) }
}

pub(super) fn has_ended(owner: &GuardedFd<OwnedFd>) -> bool {
    let Ok(owner) = owner.get() else { return false };
    poll(&mut [PollFd::new(owner, PollFlags::IN)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
