//! Determines from a process's files in `/proc` why it does not answer.

use super::Application;
use std::fmt;
use std::fs;
use tracepoint_reader::process::{pid_namespace, started_at};

/// The reason why a traced process does not acknowledge. Its text contains the command that helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SilenceReason {
    /// It has ended.
    Ended,
    /// The process with this id has left the run directory, because it has changed its user or its rights.
    Left(u32),
    /// The process with this id is stopped by a signal.
    Stopped(u32),
    /// A debugger has stopped it.
    Debugged,
    /// It has changed its user, from the first to the second one, since its agent started, and may not read the files of sessions.
    OtherUser(u32, u32),
    /// The process with this id may not open more files than this limit.
    NoDescriptors(u32, u64),
    /// None of these: it is slow, or its agent waits for something, such as the constructors of an object that the program loads.
    Unknown,
}

impl fmt::Display for SilenceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("it ended before it answered"),
            Self::Left(pid) => write!(
                f,
                "it has left the run directory, because it has changed its user or its rights: `tracectl list -p {pid}` tells more"
            ),
            Self::Stopped(pid) => {
                write!(f, "it is stopped, and will acknowledge when it continues (`kill -CONT {pid}`)")
            }
            Self::Debugged => f.write_str("a debugger has stopped it, and it will acknowledge when it continues"),
            Self::OtherUser(before, now) => write!(
                f,
                "it has become user {now} since its agent started as user {before}, and may not read the files of \
                 sessions; start the agent after the change of the user"
            ),
            Self::NoDescriptors(pid, limit) => write!(
                f,
                "all {limit} files that it may have open are in use, and its agent cannot read the session; raise the limit \
                 (`prlimit --pid {pid} --nofile={}`)",
                limit.saturating_mul(2).max(1024)
            ),
            Self::Unknown => f.write_str(
                "it is slow, or loads an object whose constructor takes long (`dlopen`), and will acknowledge when its agent runs",
            ),
        }
    }
}

impl Application {
    /// Returns the reason why it does not acknowledge. For a process in another pid namespace, only its end is known.
    pub fn silence(&self) -> SilenceReason {
        let info = self.info();
        if !self.is_alive() {
            let is_here = info.pid_namespace == pid_namespace() && info.key().exists();
            return if is_here { SilenceReason::Left(info.pid) } else { SilenceReason::Ended };
        }
        if started_at(info.pid) != Some(info.started) {
            return SilenceReason::Unknown;
        }
        let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", info.pid)).unwrap_or_default();
        let open = fs::read_dir(format!("/proc/{}/fd", info.pid)).map(Iterator::count).ok();
        reason(info.pid, info.user, &read("status"), &read("limits"), open)
    }
}

/// Returns the reason, from the process's `status` and `limits`, the user of its agent, and the number of its open files if known.
fn reason(pid: u32, agent: u32, status: &str, limits: &str, open: Option<usize>) -> SilenceReason {
    let words = |text: &str, name: &str, nth: usize| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().nth(nth)).map(str::to_owned)
    };
    match words(status, "State:", 0).as_deref() {
        Some("T") => return SilenceReason::Stopped(pid),
        Some("t") => return SilenceReason::Debugged,
        _ => {}
    }
    let user = words(status, "Uid:", 1).and_then(|user| user.parse().ok());
    if let Some(now) = user.filter(|user| *user != agent) {
        return SilenceReason::OtherUser(agent, now);
    }
    let limit = words(limits, "Max open files", 0).and_then(|limit| limit.parse::<u64>().ok());
    match (limit, open) {
        (Some(limit), Some(open)) if open as u64 >= limit => SilenceReason::NoDescriptors(pid, limit),
        _ => SilenceReason::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_in_the_files_of_the_process() {
        let status = |state: &str, user: u32| format!("Name:\tx\nState:\t{state}\nUid:\t0\t{user}\t0\t0\n");
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            20     40     files     \n";
        for (state, user, open, expected) in [
            ("S (sleeping)", 7, Some(19), SilenceReason::Unknown),
            ("S (sleeping)", 7, None, SilenceReason::Unknown),
            ("T (stopped)", 7, Some(20), SilenceReason::Stopped(4)),
            ("t (tracing stop)", 7, Some(1), SilenceReason::Debugged),
            ("S (sleeping)", 8, Some(20), SilenceReason::OtherUser(7, 8)),
            ("R (running)", 7, Some(20), SilenceReason::NoDescriptors(4, 20)),
        ] {
            assert_eq!(reason(4, 7, &status(state, user), limits, open), expected, "{state} {user} {open:?}");
        }
        assert_eq!(reason(4, 7, "", "", None), SilenceReason::Unknown);
        let text = SilenceReason::NoDescriptors(4, 20).to_string();
        assert!(text.contains("prlimit --pid 4 --nofile=1024"), "{text}");
    }
}
