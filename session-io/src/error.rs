//! The error of operations on stored sessions, which controllers return as well.

use std::io;
use std::path::PathBuf;
use tracepoint_reader::RecoverError;
use tracepoint_run_dir::private_dir::DirError;
use tracepoint_run_dir::rundir::RunDirError;
use tracepoint_session_spec::{NameError, SpecError};

/// An operation of a controller failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(RunDirError),
    /// The run directory belongs to another user.
    #[error("{reason}; run the command as that user (root: `tracectl --user {owner}`)")]
    RunDirOfOtherUser {
        /// The directory and its owner.
        reason: DirError,
        /// The owner's user id.
        owner: u32,
    },
    /// A file or directory in the run directory cannot be created, used or trusted.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The file system of the run directory is full.
    #[error("cannot write {}: its file system is full; make room there (`tracectl clean --purge`, `tracectl destroy NAME`)", .0.display())]
    RunDirFull(PathBuf),
    /// There is no such process.
    #[error("there is no process {0}; `tracectl list` lists the traced processes")]
    NoProcess(u32),
    /// The process may not be inspected.
    #[error(
        "process {pid} cannot be inspected: {source}; run the command as the user of the process (root: `tracectl --user NAME`)"
    )]
    ProcessHidden {
        /// Its id.
        pid: u32,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The process has no agent.
    #[error(
        "process {pid} is not traced: it has no entry in {}; a program becomes traceable by `let _agent = \
         tracepoint::Agent::start();` in its `main`",
        run_dir.display()
    )]
    ProcessNotTraced {
        /// Its id.
        pid: u32,
        /// The run directory in which its entry was expected.
        run_dir: PathBuf,
    },
    /// The user of the process may not use the run directory: the process has probably changed its user since its agent started.
    #[error(
        "process {pid} is of user {user}, who may not use its run directory {}: start the agent after the change of the user (`setuid`), \
         or name a directory in TRACEPOINT_RUN_DIR that this user may use",
        run_dir.display()
    )]
    ProcessUserChanged {
        /// Its id.
        pid: u32,
        /// Its user's id.
        user: u32,
        /// The run directory.
        run_dir: PathBuf,
    },
    /// The process has more rights than its user, and therefore does not offer control to the user.
    #[error("process {pid} offers no control to user {user}, who may not debug it: {reason}; {mend}")]
    ProcessPrivileged {
        /// Its id.
        pid: u32,
        /// Its user's id.
        user: u32,
        /// The right that the user does not have.
        reason: String,
        /// The remedy.
        mend: &'static str,
    },
    /// The name is not valid for a session.
    #[error("{0}")]
    SessionName(String),
    /// There is no session of that name.
    #[error("there is no session {name}; {names}")]
    NoSession {
        /// The name.
        name: String,
        /// The names of the existing sessions, as text.
        names: String,
    },
    /// A program has started the session in code.
    #[error(
        "the code of process {pid} has started the session {name}, and only that program changes it; choose another name (`tracectl create`), or \
         take what its rings hold (`tracectl snapshot {name} -o DIR`)"
    )]
    SessionInCode {
        /// The name.
        name: String,
        /// The process; the first one if there are several.
        pid: u32,
    },
    /// Another member of the group that shares the run directory wrote the outputs or programs of the session.
    #[error(
        "the session {name} names outputs or programs, and {reason}: a change would have them opened with your rights; have that user change it \
         (root: `tracectl --user NAME`), or destroy it (`tracectl destroy {name}`) and create your own"
    )]
    SessionOfOtherUser {
        /// The name of the session.
        name: String,
        /// The author of its description.
        reason: String,
    },
    /// The session's traces cannot be rotated.
    #[error("the session {name} cannot rotate: {reason}")]
    SessionCannotRotate {
        /// Its name.
        name: String,
        /// The reason, and the command that helps.
        reason: String,
    },
    /// A snapshot cannot be taken.
    #[error("cannot take a snapshot: {0}")]
    Snapshot(#[source] RecoverError),
    /// A session of that name exists already.
    #[error("there is a session {0} already; choose another name, or destroy it (`tracectl destroy {0}`)")]
    SessionExists(String),
    /// The session's description is invalid.
    #[error("the session {session} is invalid: {error}")]
    SessionSpec {
        /// Its name.
        session: String,
        /// The problem.
        error: SpecError,
    },
    /// The session's file is damaged, or of another version.
    #[error("{}: {error}; repair the file, or destroy the session (`tracectl destroy NAME`)", path.display())]
    SessionDamaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: SpecError,
    },
}

impl From<RunDirError> for ControlError {
    fn from(error: RunDirError) -> Self {
        match error.into_reason() {
            reason @ DirError::Owner { owner, .. } => Self::RunDirOfOtherUser { reason, owner },
            reason => Self::RunDir(reason.into()),
        }
    }
}

impl ControlError {
    /// Creates the error for a name that is not valid for a session.
    #[doc(hidden)]
    pub fn name(error: &NameError) -> Self {
        Self::SessionName(error.to_string())
    }
}
