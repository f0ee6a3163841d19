//! The errors of setting, firing, and listening for triggers.

use crate::error::ControlError;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_run_dir::rundir::RunDirError;

/// An operation on triggers failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// The session, or the run directory, cannot be used.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The session has no such trigger.
    #[error("the session {session} has no trigger {id}; {known}")]
    NoTrigger {
        /// The session.
        session: String,
        /// The given id.
        id: String,
        /// The triggers of the session, as text.
        known: String,
    },
    /// The session does not compute the statistic, so that the trigger would never act.
    #[error(
        "the session {session} does not compute `{statistic}`, so that the trigger would never act; {known}; add it with `tracectl \
         enable {session} -e RULE --statistic '{statistic}'`"
    )]
    NoStatistic {
        /// The session.
        session: String,
        /// The statistic of the condition.
        statistic: String,
        /// The statistics that it computes, as text.
        known: String,
    },
    /// Only `TriggerCondition::CoreDump` is reported by a message.
    #[error("the condition `{0}` is noticed by the library itself; only `OnAnyCoreDump` is reported by a message")]
    NotFired(&'static str),
    /// The notification socket cannot be used.
    #[error("cannot use the notification socket {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No process listens.
    #[error("no process listens on {}; start `tracectl listen`", .0.display())]
    NoListener(PathBuf),
    /// Another process is listening already.
    #[error("process {pid} listens on {} already; stop it first", path.display())]
    Listening {
        /// The socket.
        path: PathBuf,
        /// The process, in this pid namespace; 0 if it is in another one.
        pid: u32,
    },
    /// The listener answered that this user may not notify it (`-EPERM`).
    #[error("the listener on {} accepts only its own user and root", .0.display())]
    NotPermitted(PathBuf),
    /// The listener does not know the type of trigger (`-EOPNOTSUPP`).
    #[error("the listener on {} does not support this type of trigger; use a newer `tracectl listen`", .0.display())]
    Unsupported(PathBuf),
    /// The listener did not understand the message (`-EINVAL`).
    #[error("the listener on {} did not understand the message; use the same version of both programs", .0.display())]
    Malformed(PathBuf),
    /// The listener answered that an action failed.
    #[error("an action failed: {source}; `tracectl triggers` says which one")]
    ListenerAction {
        /// The answer, as an error of the operating system.
        source: io::Error,
    },
    /// An action failed.
    #[error("trigger {trigger} of the session {session}: {action} failed: {reason}")]
    Action {
        /// The session.
        session: String,
        /// The id of the trigger.
        trigger: String,
        /// The action.
        action: String,
        /// The reason.
        reason: String,
        /// The error number that describes it best.
        errno: i32,
    },
}

#[doc(hidden)]
impl TriggerError {
    /// The socket at `path` cannot be used.
    pub fn socket(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Socket { path: path.to_owned(), source }
    }

    /// Returns the error for a negative answer of the listener.
    pub fn answered(path: &Path, answer: i32) -> Self {
        let path = path.to_owned();
        match Errno::from_raw_os_error(answer.saturating_neg()) {
            Errno::PERM => Self::NotPermitted(path),
            Errno::OPNOTSUPP => Self::Unsupported(path),
            Errno::INVAL => Self::Malformed(path),
            errno => Self::ListenerAction { source: errno.into() },
        }
    }
}

impl From<RunDirError> for TriggerError {
    fn from(error: RunDirError) -> Self {
        Self::Control(error.into())
    }
}
