//! Why a process is not controllable.

use crate::private_dir::DirError;
use crate::rundir::RunDirError;
use std::io;

/// The agent does not run. The program is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The run directory cannot be used.
    #[error("this process cannot be controlled from outside: {0}")]
    RunDir(#[from] RunDirError),
    /// A directory or a file in it cannot be made or trusted.
    #[error("this process cannot be controlled from outside: {0}; name another run directory in TRACEPOINT_RUN_DIR")]
    Dir(#[from] DirError),
    /// There is no thread, or nothing to wake it by.
    #[error("this process cannot be controlled from outside: its agent's thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    /// One is running.
    #[error("an agent is running in this process: one is enough, keep it for as long as the program runs")]
    Running,
}
