//! How a process ended that is no child of this one.
//!
//! ```text
//!   reaped ──▶ the kernel keeps its status for those who have a pidfd (Linux 6.15) ──▶ known
//!   zombie ──▶ field 52 of /proc/PID/stat ───────────────────────────────────────────▶ known
//!   reaped, before Linux 6.15 ───────────────────────────────────────────────────────▶ not known
//! ```
//!
//! Where it is not known, the acknowledgement of the process tells whether its agent has ended its sessions: an agent that has not was killed
//! with its process, or the process ended by `_exit`.
#![expect(unsafe_code, reason = "the system call has no safe interface, and this file guarantees what it is given")]

use crate::ack::AckState;
use crate::process;
use nix::libc;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

/// `PIDFD_GET_INFO` of `linux/pidfd.h`, for the structure of 64 bytes.
const PIDFD_GET_INFO: libc::c_ulong = 0xC040_FF0B;
/// `PIDFD_INFO_EXIT`: the exit code is wanted, or known.
const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// How often both sources are asked, because the process may be reaped in between.
const TRIES: u32 = 2;

/// `struct pidfd_info`, in its first version.
#[repr(C)]
#[derive(Debug, Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// By itself.
    Exit { status: u32 },
    /// By a signal.
    Signal { number: u32, dumped_core: bool },
    /// Nobody knows.
    Unknown,
}

impl Death {
    /// How the process of `handle` ended. Its pid is that in this pid namespace.
    pub(super) fn of(handle: &OwnedFd, pid: u32, started: u64) -> Self {
        let known = (0..TRIES).find_map(|_| status_of_reaped(handle).or_else(|| status_of_zombie(pid, started)));
        known.map_or(Self::Unknown, Self::of_status)
    }

    /// By a status as `waitpid` gives it.
    fn of_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal { number: libc::WTERMSIG(status).unsigned_abs(), dumped_core: libc::WCOREDUMP(status) }
        } else {
            Self::Exit { status: libc::WEXITSTATUS(status).unsigned_abs() }
        }
    }

    /// Whether the condition `killed` has occurred, in a process with this last acknowledgement: it recorded, and neither ended orderly nor
    /// dumped core.
    pub(super) const fn is_kill(self, last: AckState) -> bool {
        let recorded = matches!(last, AckState::Recording | AckState::Ending);
        match self {
            Self::Signal { dumped_core, .. } => recorded && !dumped_core,
            // An agent that ends waits for slow sinks for a time, and the process ends then.
            Self::Exit { .. } => matches!(last, AckState::Recording),
            Self::Unknown => recorded,
        }
    }
}

/// The status that the kernel keeps after a process was reaped.
fn status_of_reaped(handle: &OwnedFd) -> Option<i32> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the request contains the size of the structure, 64 bytes, of which the kernel writes no more; it lives beyond the call.
    let result = unsafe { libc::ioctl(handle.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// The status of a process that was not reaped yet.
fn status_of_zombie(pid: u32, started: u64) -> Option<i32> {
    process::exit_status(&fs::read(format!("/proc/{pid}/stat")).ok()?, started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::process::{Command, Stdio};

    const _: () = assert!(size_of::<PidfdInfo>() == 64);

    /// How a shell with this script ends, seen before and after it is reaped.
    fn deaths(script: &str) -> [Death; 2] {
        let script = format!("read line; {script}");
        let mut child = Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("a shell");
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a handle");
        let started = process::started_at(child.id()).expect("it waits");
        drop(child.stdin.take());
        let mut fds = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).expect("it ends");
        let before = Death::of(&handle, child.id(), started);
        child.wait().expect("reaped");
        [before, Death::of(&handle, child.id(), started)]
    }

    #[test]
    fn ends_are_told_apart() {
        let all = [
            ("exit 7", Death::Exit { status: 7 }),
            ("kill -KILL $$", Death::Signal { number: 9, dumped_core: false }),
            ("kill -TERM $$", Death::Signal { number: 15, dumped_core: false }),
        ];
        for (script, expected) in all {
            let [zombie, reaped] = deaths(script);
            assert_eq!(zombie, expected, "{script}");
            // Kernels before 6.15 do not know.
            assert!(reaped == expected || reaped == Death::Unknown, "{script}: {reaped:?}");
        }
    }

    #[test]
    fn what_counts_as_killed() {
        use AckState::{Ended, Ending, Recording, Waiting};
        let signal = |dumped_core| Death::Signal { number: 9, dumped_core };
        for (death, state, expected) in [
            (signal(false), Recording, true),
            (signal(false), Waiting, false),
            (signal(true), Recording, false),
            (Death::Exit { status: 0 }, Recording, true),
            (Death::Exit { status: 0 }, Ending, false),
            (Death::Exit { status: 0 }, Ended, false),
            (Death::Unknown, Recording, true),
            (Death::Unknown, Ended, false),
        ] {
            assert_eq!(death.is_kill(state), expected, "{death:?} {state:?}");
        }
    }
}
