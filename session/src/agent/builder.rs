//! The options of an agent.

use super::{Agent, AgentError};
use tracepoint_run_dir::rundir::RunDir;

/// The options of an agent that is not started yet.
#[derive(Clone, Debug, Default)]
#[must_use = "the builder does nothing until `start` is called"]
pub struct AgentBuilder {
    follow_fork: bool,
}

impl AgentBuilder {
    pub(super) const fn new() -> Self {
        Self { follow_fork: false }
    }

    /// Sets whether processes forked after the start, and their children, get their own agent. The default is `false`. Such children are
    /// listed as separate processes and take part in the sessions; the parent's agent and recordings are not affected.
    ///
    /// A fork handler (`pthread_atfork`) starts a thread in the child, which sleeps for 50 ms and then does what [`Agent::start`] does. A
    /// child that calls `exec` within that time is not listed. Events that fire before are not recorded. Creating a thread in the child of
    /// a multi-threaded program relies on the C library; glibc and musl support it. If a lock that the agent needs was held at the moment
    /// of the fork (the lock of an allocator that does not handle forks, for example), the child is not traced and otherwise runs normally.
    ///
    /// `TRACEPOINT` also records children, each into a separate trace, but not into `text:FILE`, which belongs to the parent. Dropping the
    /// child's copy of the agent ends the child's agent, and so does `exit`.
    ///
    /// Each fork costs the creation of one thread; without this option forks cost nothing.
    pub const fn follow_fork(mut self, follow: bool) -> Self {
        self.follow_fork = follow;
        self
    }

    /// Starts the agent in the run directory of this process: see [`Agent::start`].
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn start(self) -> Result<Agent, AgentError> {
        self.start_in(&RunDir::of_traced_process()?)
    }

    /// Starts the agent in `run_dir`.
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn start_in(self, run_dir: &RunDir) -> Result<Agent, AgentError> {
        Agent::start_with(run_dir, self.follow_fork)
    }
}
