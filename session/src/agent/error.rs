//! The error type of [`Agent::start`](super::Agent::start).

use fileguard::shortage_mend;
use std::io;
use tracepoint_run_dir::private_dir::DirError;
use tracepoint_run_dir::rundir::RunDirError;

/// The agent could not be started. The program itself is not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The run directory cannot be used.
    #[error("this process cannot be controlled from outside: {0}")]
    RunDir(#[from] RunDirError),
    /// A directory or a file in the run directory cannot be created or trusted.
    #[error("this process cannot be controlled from outside: {}", .0.with_mend("set TRACEPOINT_RUN_DIR to another directory"))]
    Dir(#[from] DirError),
    /// The thread, or the pipe that wakes it, cannot be created.
    #[error("this process cannot be controlled from outside: its agent's thread cannot be started: {}{}", .0, shortage_mend(.0).unwrap_or_default())]
    Thread(#[source] io::Error),
    /// This process already has an agent.
    #[error("an agent is already running in this process; start one only, and keep it for as long as the program runs")]
    Running,
}
