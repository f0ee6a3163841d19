//! Determines how a process ended that is not a child of this one.
//!
//! ```text
//!   zombie ──▶ field 52 of /proc/PID/stat ──────────────────────────────────────────▶ known
//!   reaped ──▶ the kernel keeps the status for holders of a pidfd (Linux 6.15) ─────▶ known, but perhaps without the core dump flag
//!   reaped, before Linux 6.15 ──────────────────────────────────────────────────────▶ not known
//! ```
//!
//! The kernel keeps the status of the main thread. This status does not contain the core dump flag if another thread caused the dump. Then
//! the signal decides: where the kernel starts our helper for core dumps, a signal that causes one is assumed to have done so.
//!
//! If the status is not known, the acknowledgement of the process shows whether its agent has ended its sessions: if not, the process was
//! killed, or ended by `_exit`.
#![expect(unsafe_code, reason = "the system call has no safe interface, and this file guarantees what it is given")]

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use tracepoint_reader::process;
use tracepoint_run_dir::ack::AckState;

/// `PIDFD_GET_INFO` of `linux/pidfd.h`, for the structure of 64 bytes.
const PIDFD_GET_INFO: libc::c_ulong = 0xC040_FF0B;
/// `PIDFD_INFO_EXIT`: the exit code is requested, or known.
const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// Number of times that both sources are tried, because the process may be reaped in between.
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

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// It exited.
    Exit { status: u32 },
    /// A signal ended it.
    Signal { number: u32, core: Core },
    /// Unknown.
    Unknown,
}

/// The core dump of a process that a signal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    Dumped,
    NotDumped,
    /// The signal causes a core dump, if the process may write one.
    Unknown,
}

/// The signals that cause a core dump.
const CORE_SIGNALS: [i32; 10] = [
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];

impl Death {
    /// Returns how the process of `handle` ended. `pid` is its id in this pid namespace.
    pub(super) fn of(handle: &OwnedFd, pid: u32, started: u64) -> Self {
        let of_zombie = || status_of_zombie(pid, started).map(|status| Self::of_status(status, true));
        let of_reaped = || status_of_reaped(handle).map(|status| Self::of_status(status, false));
        (0..TRIES).find_map(|_| of_zombie().or_else(of_reaped)).unwrap_or(Self::Unknown)
    }

    /// Interprets a status as returned by `waitpid`, of the whole process or of its main thread alone.
    fn of_status(status: i32, is_whole: bool) -> Self {
        if !libc::WIFSIGNALED(status) {
            return Self::Exit { status: libc::WEXITSTATUS(status).unsigned_abs() };
        }
        let signal = libc::WTERMSIG(status);
        let core = match libc::WCOREDUMP(status) {
            true => Core::Dumped,
            false if is_whole || !CORE_SIGNALS.contains(&signal) => Core::NotDumped,
            false => Core::Unknown,
        };
        Self::Signal { number: signal.unsigned_abs(), core }
    }

    /// Returns whether the condition `killed` has occurred, in a process with this last acknowledgement: it recorded, and neither ended
    /// its sessions nor dumped core.
    pub(super) fn is_kill(self, last: AckState, has_core_handler: impl Fn() -> bool) -> bool {
        let recorded = matches!(last, AckState::Recording | AckState::Ending);
        match self {
            Self::Signal { core: Core::Unknown, .. } => recorded && !has_core_handler(),
            Self::Signal { core, .. } => recorded && core == Core::NotDumped,
            // An agent that ends waits for slow sinks for a limited time; then the process ends.
            Self::Exit { .. } => matches!(last, AckState::Recording),
            Self::Unknown => recorded,
        }
    }
}

/// Returns the status that the kernel keeps after a process was reaped.
fn status_of_reaped(handle: &OwnedFd) -> Option<i32> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the request contains the size of the structure, 64 bytes, of which the kernel writes no more; it lives beyond the call.
    let result = unsafe { libc::ioctl(handle.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

/// Returns the status of a process that was not reaped yet.
fn status_of_zombie(pid: u32, started: u64) -> Option<i32> {
    process::exit_status(&fs::read(format!("/proc/{pid}/stat")).ok()?, started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::process::{Command, Stdio};

    const _: () = assert!(size_of::<PidfdInfo>() == 64);

    /// Returns how a shell with this script ended, determined before and after it was reaped.
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
            ("kill -KILL $$", Death::Signal { number: 9, core: Core::NotDumped }),
            ("kill -TERM $$", Death::Signal { number: 15, core: Core::NotDumped }),
        ];
        for (script, expected) in all {
            let [zombie, reaped] = deaths(script);
            assert_eq!(zombie, expected, "{script}");
            // Kernels before 6.15 do not report it.
            assert!(reaped == expected || reaped == Death::Unknown, "{script}: {reaped:?}");
        }
    }

    #[test]
    fn what_counts_as_killed() {
        use AckState::{Ended, Ending, Recording, Waiting};
        let signal = |core| Death::Signal { number: 11, core };
        for (death, state, handler, expected) in [
            (signal(Core::NotDumped), Recording, true, true),
            (signal(Core::NotDumped), Waiting, true, false),
            (signal(Core::Dumped), Recording, false, false),
            (signal(Core::Unknown), Recording, true, false),
            (signal(Core::Unknown), Recording, false, true),
            (Death::Exit { status: 0 }, Recording, true, true),
            (Death::Exit { status: 0 }, Ending, true, false),
            (Death::Exit { status: 0 }, Ended, true, false),
            (Death::Unknown, Recording, true, true),
            (Death::Unknown, Ended, true, false),
        ] {
            assert_eq!(death.is_kill(state, || handler), expected, "{death:?} {state:?}");
        }
        // The status of the main thread does not show a core dump that another thread has caused.
        let statuses = [(0x8B, false), (0x8B, true), (0x0B, true), (0x0B, false), (0x09, false)];
        let cores = statuses.map(|(status, is_whole)| match Death::of_status(status, is_whole) {
            Death::Signal { core, .. } => core,
            death => panic!("{death:?}"),
        });
        assert_eq!(cores, [Core::Dumped, Core::Dumped, Core::NotDumped, Core::Unknown, Core::NotDumped]);
    }
}
