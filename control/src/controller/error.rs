//! What a controller could not do.

use crate::private_dir::DirError;
use crate::rundir::RunDirError;
use crate::session::SessionError;
use crate::spec::SpecError;
use std::io;
use std::path::PathBuf;

/// A controller could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(RunDirError),
    /// It belongs to another user.
    #[error("{reason}; be that user (root: `tracectl --user {owner}`)")]
    OtherUser {
        /// Which directory, and whose it is.
        reason: DirError,
        /// Its owner's id.
        owner: u32,
    },
    /// Something in it cannot be made, used or trusted.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// There is no such process.
    #[error("there is no process {pid}; `tracectl list` shows those that are traced")]
    NoProcess {
        /// Its id.
        pid: u32,
    },
    /// It may not be looked at.
    #[error("process {pid} cannot be looked at: {source}; be the user that it runs as (root: `tracectl --user NAME`)")]
    Hidden {
        /// Its id.
        pid: u32,
        /// What the operating system answered.
        source: io::Error,
    },
    /// It has no agent.
    #[error(
        "process {pid} is not traced: it has no entry in {}; a program becomes traceable by `let _agent = \
         tracepoint_control::Agent::start();` in its `main`",
        run_dir.display()
    )]
    NotTraced {
        /// Its id.
        pid: u32,
        /// Where it was looked for.
        run_dir: PathBuf,
    },
    /// No session can be called so.
    #[error("{reason}")]
    Name {
        /// Which name, and what is wrong with it.
        reason: String,
    },
    /// There is no session of that name.
    #[error("there is no session {name}; {names}")]
    NoSession {
        /// The name.
        name: String,
        /// Which there are.
        names: String,
    },
    /// Its traces cannot go on in other chunks.
    #[error("the session {name} cannot rotate: {reason}")]
    CannotRotate {
        /// Its name.
        name: String,
        /// Why, and what can be done.
        reason: String,
    },
    /// There is one of that name already.
    #[error("there is a session {name} already; choose another name, or destroy it (`tracectl destroy {name}`)")]
    Exists {
        /// The name.
        name: String,
    },
    /// The session's description will not do.
    #[error("the session {session} cannot be: {error}")]
    Spec {
        /// Its name.
        session: String,
        /// What is wrong.
        error: SpecError,
    },
    /// Its file is damaged, or of another version.
    #[error("{}: {error}; mend it by hand, or destroy the session (`tracectl destroy NAME`)", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: SpecError,
    },
}

impl From<RunDirError> for ControlError {
    fn from(error: RunDirError) -> Self {
        match error.into_reason() {
            reason @ DirError::Owner { owner, .. } => Self::OtherUser { reason, owner },
            reason => Self::RunDir(reason.into()),
        }
    }
}

impl ControlError {
    pub(super) fn name(error: &SessionError) -> Self {
        Self::Name { reason: error.to_string() }
    }
}
