//! The counterpart on systems other than Linux: no agent starts there, and the program records by sessions in code alone.

#[path = "builder.rs"]
mod builder;
#[path = "error.rs"]
mod error;

pub use builder::AgentBuilder;
pub use error::AgentError;

use crate::session::SessionError;
use crate::state::{Dump, StateDump, state_dump};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::SnapshotSummary;

/// Makes this process controllable by `tracectl`, on Linux. On this system [`Agent::start`] returns an error, which says so; programs continue
/// without an agent.
#[derive(Debug)]
pub struct Agent(Infallible);

impl Agent {
    /// Refuses: there is no agent on this system.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn start() -> Result<Self, AgentError> {
        Self::builder().start()
    }

    /// Returns a builder with the options of the agent.
    pub const fn builder() -> AgentBuilder {
        AgentBuilder::new()
    }

    /// Is not reached: there is no [`RunDir`].
    ///
    /// # Errors
    ///
    /// None.
    pub fn start_in(run_dir: &RunDir) -> Result<Self, AgentError> {
        Self::start_with(run_dir, false)
    }

    fn start_with(run_dir: &RunDir, _follows_fork: bool) -> Result<Self, AgentError> {
        unreachable!("{run_dir:?}")
    }

    /// Registers a state dump: a function that records existing state into sessions that begin later. See [`state_dump`].
    pub fn state_dump(&self, name: impl Into<String>, tell: impl Fn(&Dump) + Send + Sync + 'static) -> StateDump {
        state_dump(name, tell)
    }

    /// Is not reached, as the following.
    ///
    /// # Errors
    ///
    /// None.
    pub fn snapshot(&self, _name: &str, _out: impl AsRef<Path>) -> Result<SnapshotSummary, SessionError> {
        match self.0 {}
    }

    /// Is not reached.
    ///
    /// # Errors
    ///
    /// None.
    pub fn rotate(&self, _name: &str) -> Result<Vec<PathBuf>, SessionError> {
        match self.0 {}
    }

    /// Is not reached.
    ///
    /// # Errors
    ///
    /// None.
    pub fn flush(&self, _name: &str) -> Result<(), SessionError> {
        match self.0 {}
    }

    /// Is not reached.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    /// Is not reached.
    pub fn notices(&self) -> &[Notice] {
        match self.0 {}
    }
}
