//! What a thread does at a time: it runs, or does not run for a cause.

use serde::Serialize;
use serde::ser::SerializeMap;

/// What a thread does, or why it does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// It runs.
    Running,
    /// It could run, and no processor is free for it.
    Ready,
    /// It waits in a system call of locks: for a mutex, a condition variable, the end of a thread.
    Lock,
    /// It waits for a disk.
    Disk,
    /// It waits for a network.
    Network,
    /// It sleeps, or waits until a time is over.
    Sleep,
    /// It waits for a page that is not in memory.
    PageFault,
    /// It waits for another thread or process, for example to write into a pipe.
    Thread,
    /// It waits, and what for is not recorded.
    Blocked,
    /// The span is asynchronous, and no thread polls it.
    NotPolled,
    /// The state of the thread is not recorded.
    Unknown,
}

impl Cause {
    /// All causes, in the order of their columns.
    pub const ALL: [Self; 11] = [
        Self::Running,
        Self::Ready,
        Self::Lock,
        Self::Disk,
        Self::Network,
        Self::Sleep,
        Self::PageFault,
        Self::Thread,
        Self::Blocked,
        Self::NotPolled,
        Self::Unknown,
    ];

    /// Its name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Lock => "lock",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Sleep => "sleep",
            Self::PageFault => "page fault",
            Self::Thread => "another thread",
            Self::Blocked => "blocked",
            Self::NotPolled => "not polled",
            Self::Unknown => "unknown",
        }
    }
}

/// A time in nanoseconds, by what was done in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division([u64; Cause::ALL.len()]);

impl Division {
    pub(super) const fn new() -> Self {
        Self([0; Cause::ALL.len()])
    }

    /// A time of which nothing is known.
    pub(super) fn unknown(nanoseconds: u64) -> Self {
        let mut all = Self::default();
        all.add(Cause::Unknown, nanoseconds);
        all
    }

    /// The time with this cause, in nanoseconds.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// The causes that took time, and their times in nanoseconds.
    pub fn parts(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().map(|cause| (cause, self.of(cause))).filter(|(_, time)| *time > 0)
    }

    /// The sum of all times.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, time| sum.saturating_add(*time))
    }

    pub(super) fn add(&mut self, cause: Cause, nanoseconds: u64) {
        let time = &mut self.0[cause as usize];
        *time = time.saturating_add(nanoseconds);
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        other.parts().for_each(|(cause, time)| self.add(cause, time));
    }

    /// Moves up to this time from one cause to another.
    pub(super) fn change(&mut self, from: Cause, to: Cause, nanoseconds: u64) {
        let moved = nanoseconds.min(self.of(from));
        self.0[from as usize] -= moved;
        self.add(to, moved);
    }

    /// Returns what has been added since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut times = self.0;
        times.iter_mut().zip(earlier.0).for_each(|(time, earlier)| *time = time.saturating_sub(earlier));
        Self(times)
    }

    /// Extends or cuts it to this total: what is missing is of this cause; what is too much is taken from the largest part.
    pub(super) fn fit(&mut self, nanoseconds: u64, rest: Cause) {
        self.add(rest, nanoseconds.saturating_sub(self.total()));
        let excess = self.total().saturating_sub(nanoseconds);
        if let Some(largest) = self.0.iter_mut().max() {
            *largest = largest.saturating_sub(excess);
        }
    }
}

impl Serialize for Division {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (cause, time) in self.parts() {
            map.serialize_entry(&cause, &time)?;
        }
        map.end()
    }
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WokenBy {
    /// The thread that ran.
    Thread,
    /// A timer or a device, in an interrupt.
    Interrupt,
    /// Work that an interrupt has left: packets of a network.
    SoftInterrupt,
    /// It is not recorded, or the wait is not over.
    Unknown,
}

/// Returns why a thread waited in a system call, or in none of those that are recorded. `is_uninterruptible` is the state in which it waited.
pub(super) fn cause(call: Option<&str>, is_uninterruptible: bool, woken_by: WokenBy) -> Cause {
    let Some(call) = call else { return Cause::Blocked };
    match call {
        "futex" | "semop" | "semtimedop" | "flock" | "fcntl" => match woken_by {
            WokenBy::Interrupt => Cause::Sleep,
            WokenBy::Thread | WokenBy::SoftInterrupt => Cause::Lock,
            // A timer may have ended it.
            WokenBy::Unknown => Cause::Blocked,
        },
        "nanosleep" | "clock_nanosleep" | "pause" | "rt_sigtimedwait" | "rt_sigsuspend" => Cause::Sleep,
        "fsync" | "fdatasync" | "sync_file_range" | "msync" | "sync" | "syncfs" | "open" | "openat" | "truncate"
        | "ftruncate" | "fallocate" | "getdents64" | "copy_file_range" => Cause::Disk,
        "accept" | "accept4" | "connect" | "recvfrom" | "recvmsg" | "recvmmsg" | "sendto" | "sendmsg" | "sendmmsg" => {
            Cause::Network
        }
        "wait4" | "waitid" => Cause::Thread,
        "sched_yield" => Cause::Ready,
        "io_getevents" | "io_uring_enter" if woken_by != WokenBy::Thread => Cause::Disk,
        // The rest depends on the kind of the descriptor, which is not recorded.
        _ if is_uninterruptible => Cause::Disk,
        _ => match woken_by {
            WokenBy::Thread => Cause::Thread,
            WokenBy::SoftInterrupt => Cause::Network,
            WokenBy::Interrupt if waits_until(call) => Cause::Sleep,
            WokenBy::Interrupt | WokenBy::Unknown => Cause::Blocked,
        },
    }
}

/// Returns whether a system call waits for at most a given time.
fn waits_until(call: &str) -> bool {
    ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"].contains(&call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_follows_from_the_call_the_state_and_the_waker() {
        let cases = [
            (Some("futex"), false, WokenBy::Thread, Cause::Lock),
            (Some("futex"), false, WokenBy::Interrupt, Cause::Sleep),
            (Some("futex"), false, WokenBy::Unknown, Cause::Blocked),
            (Some("clock_nanosleep"), false, WokenBy::Interrupt, Cause::Sleep),
            (Some("read"), true, WokenBy::Interrupt, Cause::Disk),
            (Some("read"), false, WokenBy::Thread, Cause::Thread),
            (Some("read"), false, WokenBy::SoftInterrupt, Cause::Network),
            (Some("recvfrom"), false, WokenBy::Thread, Cause::Network),
            (Some("epoll_wait"), false, WokenBy::Interrupt, Cause::Sleep),
            (Some("epoll_wait"), false, WokenBy::Unknown, Cause::Blocked),
            (Some("fsync"), false, WokenBy::Unknown, Cause::Disk),
            (None, true, WokenBy::Interrupt, Cause::Blocked),
        ];
        for (call, is_uninterruptible, woken_by, expected) in cases {
            assert_eq!(cause(call, is_uninterruptible, woken_by), expected, "{call:?} {woken_by:?}");
        }
    }

    #[test]
    fn a_division_is_made_to_fit() {
        let mut division = Division::default();
        division.add(Cause::Running, 10);
        division.fit(15, Cause::NotPolled);
        assert_eq!(division.parts().collect::<Vec<_>>(), [(Cause::Running, 10), (Cause::NotPolled, 5)]);
        division.fit(12, Cause::Unknown);
        assert_eq!((division.total(), division.of(Cause::Running)), (12, 7));
    }
}
