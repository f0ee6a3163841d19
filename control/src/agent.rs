//! The agent: what makes a running process controllable from outside.
//!
//! One thread, `tracepoint-agent`, that blocks until somebody rings the process's bell; it then looks at the sessions in the run
//! directory, does what they say, and writes down what it did. `docs/format-run-directory.md` has the files and their order.

mod active_session;
mod builder;
mod context;
mod entry;
mod environment;
mod error;
mod fork;
mod refusals;
mod stamp;
mod watch;
mod woken;
mod worker;

pub use builder::AgentBuilder;
pub use error::AgentError;

use crate::rundir::RunDir;
use crate::state::{Dump, StateDump, state_dump};
use rustix::event::{EventfdFlags, eventfd};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use worker::Worker;

/// How long the start waits for the sessions that are there already to be applied.
const START: Duration = Duration::from_secs(1);
/// How long the agent waits for the sinks of a session that records: there are others.
const SINK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the end waits for sessions to end.
const END: Duration = Duration::from_secs(5);

/// The process whose agent runs; 0: none. A forked child has another id, and none.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Makes this process controllable from outside, for as long as it lives: with `tracectl` by the same user, and by `TRACEPOINT` in
/// the environment when it is started.
///
/// ```
/// # let place = tempfile::tempdir_in("/dev/shm")?;
/// # let run_dir = tracepoint_control::RunDir::at(&place.path().join("run"))?;
/// # let start = || tracepoint_control::Agent::start_in(&run_dir);
/// # #[cfg(any())]
/// let start = tracepoint_control::Agent::start;
/// // The program goes on without it.
/// let _agent = start().inspect_err(|error| eprintln!("not controllable: {error}")).ok();
/// # assert!(_agent.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Costs a thread that blocks, with no wake-up at all while there is no session; 64 KiB or so in the run directory. A session costs a
/// thread more, its rings, and what is recorded. The agent's own threads are not recorded.
///
/// Dropping it ends the sessions that are controlled from outside, so that their traces are complete; it waits for their sinks, 5 s at
/// most. A process that ends without dropping it (`process::exit`, a signal) leaves its rings to `tracectl recover`.
///
/// # In the environment
///
/// `TRACEPOINT='RULE[,RULE…][=SINK]'` records from the start. A rule is a pattern for `provider:name`, with `!` one for what is left
/// out, or one for levels (`<=info`). SINK is `ctf:DIR`, `text:FILE`, or `text`, which is the standard error; without it events go to a CTF
/// directory in `$TRACEPOINT_OUT`, or where the program was started. FILE is written on from its end; a process that is started while
/// another one writes it, a child for example, has a file beside it, with its own name. Directories and files get 1 GiB large. What is
/// wrong with it is told on the standard error, and in [`Agent::notices`]. Processes that were given more rights than their user do not
/// look at the environment.
///
/// # Forked children
///
/// The agent stays with the process that started it. A child that goes on without `exec` is not controllable unless it starts one of
/// its own, or the parent's was started to [follow forks](AgentBuilder::follow_fork).
#[derive(Debug)]
pub struct Agent {
    process: u32,
    path: PathBuf,
    notices: Vec<String>,
    /// Wakes the thread, and ends it.
    stop: Arc<OwnedFd>,
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
    follows_fork: bool,
}

impl Agent {
    /// Starts it, in the run directory that [`RunDir::find`] finds. Sessions that are there already, and `TRACEPOINT`, have been
    /// applied when it returns, unless that takes longer than a second.
    ///
    /// # Errors
    ///
    /// If the run directory or a file in it cannot be made or trusted, if there is no thread to be had, or if one is running. The
    /// program is none the worse for it.
    pub fn start() -> Result<Self, AgentError> {
        Self::builder().start()
    }

    /// Says how it is to be before it is started.
    pub const fn builder() -> AgentBuilder {
        AgentBuilder::new()
    }

    /// The same in this run directory.
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn start_in(run_dir: &RunDir) -> Result<Self, AgentError> {
        Self::builder().start_in(run_dir)
    }

    fn start_as(run_dir: &RunDir, follows_fork: bool) -> Result<Self, AgentError> {
        let process = process::id();
        if !claim(process) {
            return Err(AgentError::Running);
        }
        Self::start_only(run_dir, process, follows_fork).inspect_err(|_| RUNNING.store(0, Ordering::Relaxed))
    }

    fn start_only(run_dir: &RunDir, process: u32, follows_fork: bool) -> Result<Self, AgentError> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| AgentError::Thread(errno.into()))?;
        let stop = Arc::new(stop);
        let stopped = Arc::clone(&stop);
        let mut worker = Worker::new(run_dir)?;
        let notices = worker.follow_environment();
        for notice in &notices {
            say(notice);
        }
        let path = worker.path().to_owned();
        let (ready, looked) = channel();
        let (end, ended) = channel();
        let run = move || {
            worker.run(&stopped, &ready);
            let _ = end.send(());
        };
        let builder = std::thread::Builder::new().name("tracepoint-agent".to_owned());
        let thread = builder.spawn(run).map_err(AgentError::Thread)?;
        // Whoever waits longer than that goes on without.
        let _ = looked.recv_timeout(START);
        let agent = Self { process, path, notices, stop, ended, thread: Some(thread), follows_fork };
        // Dropped if it cannot be as it is wanted.
        if follows_fork {
            fork::follow(run_dir)?;
        }
        Ok(agent)
    }

    /// Registers a function that tells what there is, to sessions that begin later: [`state_dump`].
    pub fn state_dump(&self, name: impl Into<String>, tell: impl Fn(&Dump) + Send + Sync + 'static) -> StateDump {
        state_dump(name, tell)
    }

    /// Its entry in the run directory: `apps/PID-START`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was wrong with the environment, and did not keep the agent from starting.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != process::id() {
            // The thread is the parent's.
            std::mem::forget(thread);
            if self.follows_fork {
                fork::end_child();
            }
            return;
        }
        if self.follows_fork {
            fork::follow_no_more();
        }
        // Any number that is not 0 is as good as another.
        if rustix::io::write(&*self.stop, &[1; 8]).is_ok() && self.ended.recv_timeout(END).is_ok() {
            let _ = thread.join();
        }
        RUNNING.store(0, Ordering::Relaxed);
    }
}

/// Makes `process`, which is this one, the one whose agent runs; `false` if that is so already.
fn claim(process: u32) -> bool {
    let before = RUNNING.load(Ordering::Relaxed);
    before != process && RUNNING.compare_exchange(before, process, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Says something on the standard error, if anybody is there.
fn say(notice: &str) {
    let _ = writeln!(std::io::stderr(), "tracepoint: {notice}");
}
