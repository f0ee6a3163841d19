//! How an agent is to be.

use super::{Agent, AgentError};
use crate::rundir::RunDir;

/// An agent that is not started yet.
#[derive(Clone, Debug, Default)]
#[must_use = "it does nothing until it is started"]
pub struct AgentBuilder {
    follow_fork: bool,
}

impl AgentBuilder {
    pub(super) const fn new() -> Self {
        Self { follow_fork: false }
    }

    /// Whether children that are forked from here on, and theirs, get an agent of their own: no, unless told otherwise. They are then listed as
    /// processes of their own, and take part in the sessions; the parent, and what is recorded of it, is left alone.
    ///
    /// The child makes a thread in its handler of fork (`pthread_atfork`), which rests for 50 ms and then does what [`Agent::start`] does: a
    /// child that becomes another program by then is not listed. What it fires before is not recorded. It is the C library's
    /// promise that a child of a program with threads may do this: glibc and musl give it. A child whose parent had a lock taken at the
    /// moment of the fork that the agent needs (that of the program's allocator, where it does not look after forks) is not traced, and
    /// goes on otherwise.
    ///
    /// `TRACEPOINT` records children too, each into a trace of its own, but not into `text:FILE`, which is the parent's. The
    /// child's copy of the agent, when it is dropped, ends the child's. A child that ends without that leaves its rings to `tracectl
    /// recover`, as any process.
    ///
    /// Costs a fork the making of a thread; and without it nothing.
    pub const fn follow_fork(mut self, follow: bool) -> Self {
        self.follow_fork = follow;
        self
    }

    /// Starts it, in the run directory that [`RunDir::find`] finds: see [`Agent::start`].
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn start(self) -> Result<Agent, AgentError> {
        self.start_in(&RunDir::find()?)
    }

    /// The same in this run directory.
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn start_in(self, run_dir: &RunDir) -> Result<Agent, AgentError> {
        Agent::start_as(run_dir, self.follow_fork)
    }
}
