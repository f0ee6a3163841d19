//! The agent makes a running process controllable by other processes.
//!
//! One thread, `tracepoint-agent`, blocks until another process rings the bell of this process. It then reads the sessions in the run
//! directory, applies them, and acknowledges the result. `docs/format-run-directory.md` describes the files and the order in which they are
//! written.
//!
//! `worker` is the thread. At each scan it updates `context` (the process and its events), and applies each session's file by a
//! `session_follower`; `current_errors` stores the errors and the times of the retries. `entry` and `description` publish the process.
//! `environment` starts the recording requested by `TRACEPOINT`. `late_markers` handles events that are registered while the program runs,
//! `fork` forked children, `worker::changed_identity` a process that changes its user or rights, and `running` the end of the process.
//! Sessions can end without a free descriptor (`spare_descriptors`), and without space in the run directory, because replaced files have
//! spares.

mod builder;
mod context;
mod current_errors;
mod description;
mod entry;
mod environment;
mod error;
mod file_version;
mod fork;
mod late_markers;
mod recordings;
mod running;
mod session_follower;
mod spare_descriptors;
mod trusted_outputs;
mod wakeup;
mod watch;
mod worker;

pub use builder::AgentBuilder;
pub use error::AgentError;

use crate::session::{SessionError, SharedRecording};
use crate::state::{Dump, StateDump, state_dump};
use recordings::Recordings;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::SnapshotSummary;
use tracepoint_sinks::own_thread;
use wakeup::Stop;
use worker::Worker;

/// Maximum time that `Agent::start` waits until the existing sessions are applied.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time that the agent waits for the sinks of a recording session before it serves the other sessions.
const SINK_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time that dropping the agent waits for sessions to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The id of the process whose agent runs; 0 if none runs. A forked child has another id, so the inherited value does not apply to it.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Makes this process controllable for as long as the value lives: by the same user with `tracectl`, and by the environment variable
/// `TRACEPOINT`, which is read at the start. A process that has more rights than that user, or is not dumpable, is not controllable: the
/// agent does not start, or ends the sessions of that user when this changes.
///
/// ```
/// # let place = tempfile::tempdir_in("/dev/shm")?;
/// # let run_dir = tracepoint_run_dir::RunDir::at(&place.path().join("run"))?;
/// # let start = || tracepoint_session::Agent::start_in(&run_dir);
/// # #[cfg(any())]
/// let start = tracepoint_session::Agent::start;
/// // The program continues without an agent if it cannot be started.
/// let _agent = start().inspect_err(|error| eprintln!("not controllable: {error}")).ok();
/// # assert!(_agent.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The agent costs one blocked thread, which does not wake up while there is no session, and about 64 KiB in the run directory. Each
/// session costs another thread, its rings, and the recorded data. The agent's own threads are not recorded.
///
/// Dropping the agent ends the sessions that other processes control, so that their traces are complete; it waits at most 5 s for their
/// sinks. `process::exit` does the same, and so does the end of `main` with an agent that was not dropped, but not inside a probe. A
/// process that ends in another way (a signal, `abort`, `_exit`, `exec`) leaves its rings to `tracectl recover`.
///
/// # In the environment
///
/// `TRACEPOINT='RULE[,RULE…][=SINK]'` records from the start of the program. A rule is a pattern for `provider:name`, an exclusion that
/// begins with `!`, or one condition on the level (`<=info`). SINK is `ctf:DIR`, `text:FILE`, `text` for standard error, or a path that
/// begins with `/` or `.`, which is a DIR. Without SINK, events are written to a CTF directory in `$TRACEPOINT_OUT`, or in the current
/// directory; a line on standard error names it. FILE is appended to; if another process, for example the parent, is writing to it, the
/// process writes to a separate file next to it. Directories and files grow to at most 1 GiB. Errors in the variable are reported on
/// standard error and in [`Agent::notices`]. Processes in secure execution mode (set-user-ID, set-group-ID, file capabilities) ignore the
/// environment.
///
/// # Forked children
///
/// The agent stays with the process that started it. A forked child that does not call `exec` is controllable only if it starts its own
/// agent, or if the parent's agent [follows forks](AgentBuilder::follow_fork).
#[derive(Debug)]
pub struct Agent {
    process: u32,
    path: PathBuf,
    notices: Vec<Notice>,
    thread: Option<JoinHandle<()>>,
    follows_fork: bool,
    recordings: Arc<Recordings>,
}

impl Agent {
    /// Starts an agent in the run directory of this process. Existing sessions and `TRACEPOINT` have been applied when this
    /// function returns, unless that takes longer than a second.
    ///
    /// # Errors
    ///
    /// If the run directory or a file in it cannot be created or trusted, if this process has more rights than the owner of that directory
    /// (`DirError::MoreRights`), if the thread cannot be started, or if this process already has an agent. The program itself is not affected.
    pub fn start() -> Result<Self, AgentError> {
        Self::builder().start()
    }

    /// Returns a builder with the options of the agent.
    pub const fn builder() -> AgentBuilder {
        AgentBuilder::new()
    }

    /// Starts an agent in `run_dir`.
    ///
    /// # Errors
    ///
    /// As [`Agent::start`].
    pub fn start_in(run_dir: &RunDir) -> Result<Self, AgentError> {
        Self::builder().start_in(run_dir)
    }

    fn start_with(run_dir: &RunDir, follows_fork: bool) -> Result<Self, AgentError> {
        let process = process::id();
        if !claim(process) {
            return Err(AgentError::Running);
        }
        Self::start_claimed(run_dir, process, follows_fork).inspect_err(|_| RUNNING.store(0, Ordering::Relaxed))
    }

    fn start_claimed(run_dir: &RunDir, process: u32, follows_fork: bool) -> Result<Self, AgentError> {
        own_thread::follow_environment();
        let stop = Stop::new().map_err(AgentError::Thread)?;
        let mut worker = Worker::new(run_dir, stop.clone())?;
        let notices = worker.follow_environment();
        for notice in &notices {
            print_notice(notice);
        }
        let (path, recordings) = (worker.path().to_owned(), worker.recordings());
        let (ready, first_scan) = channel();
        let (end, ended) = channel();
        let run = move || {
            worker.run(&ready);
            let _ = end.send(());
        };
        let thread = own_thread::spawn("tracepoint-agent", run).map_err(AgentError::Thread)?;
        running::register(stop, ended);
        // On a timeout the program continues, and the agent continues in the background.
        let _ = first_scan.recv_timeout(START_TIMEOUT);
        let agent = Self { process, path, notices, thread: Some(thread), follows_fork, recordings };
        // If this fails, the agent is dropped, which stops its thread.
        if follows_fork {
            fork::follow(run_dir)?;
        }
        Ok(agent)
    }

    /// Registers a state dump: a function that records existing state into sessions that begin later. See [`state_dump`].
    pub fn state_dump(&self, name: impl Into<String>, tell: impl Fn(&Dump) + Send + Sync + 'static) -> StateDump {
        state_dump(name, tell)
    }

    /// Takes a snapshot of the events that this process records for the session `name`, which another process controls, as
    /// [`Session::snapshot`](crate::Session::snapshot) does. `NamedSession::snapshot` takes a snapshot of all its
    /// processes.
    ///
    /// ```no_run
    /// let agent = tracepoint_session::Agent::start()?;
    /// if let Err(error) = agent.snapshot("flight", "/var/tmp/flight") {
    ///     eprintln!("{error}"); // nobody has started `flight`, for example
    /// }
    /// # Ok::<(), tracepoint_session::AgentError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRecorded`] if this process records no session of that name; and as [`Session::snapshot`](crate::Session::snapshot).
    pub fn snapshot(&self, name: &str, out: impl AsRef<Path>) -> Result<SnapshotSummary, SessionError> {
        self.recording(name)?.snapshot(out.as_ref())
    }

    /// Makes the CTF sinks of the session `name` in this process continue in a new chunk, as [`Session::rotate`](crate::Session::rotate) does.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRecorded`] if this process records no session of that name; and as [`Session::rotate`](crate::Session::rotate).
    pub fn rotate(&self, name: &str) -> Result<Vec<PathBuf>, SessionError> {
        self.recording(name)?.rotate()
    }

    /// Moves all events of the session `name` to its sinks in this process, as [`Session::flush`](crate::Session::flush) does. If
    /// `tracectl record` takes the packets, they are closed for it.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRecorded`] if this process records no session of that name; and as [`Session::flush`](crate::Session::flush).
    pub fn flush(&self, name: &str) -> Result<(), SessionError> {
        self.recording(name)?.flush()
    }

    fn recording(&self, name: &str) -> Result<Arc<SharedRecording>, SessionError> {
        if self.process != process::id() {
            return Err(SessionError::Forked { name: name.to_owned(), process: self.process });
        }
        self.recordings.find(name)
    }

    /// The agent's entry in the run directory: `apps/PID-START`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Problems in the environment variables that did not prevent the agent from starting.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != process::id() {
            // In a forked child: the thread exists in the parent only.
            std::mem::forget(thread);
            if self.follows_fork {
                fork::stop_following();
                running::end();
            }
            return;
        }
        if self.follows_fork {
            fork::stop_following();
        }
        if running::end() {
            let _ = thread.join();
        }
        RUNNING.store(0, Ordering::Relaxed);
    }
}

/// Marks `process`, the calling process, as the process whose agent runs. Returns `false` if it is marked already.
fn claim(process: u32) -> bool {
    let before = RUNNING.load(Ordering::Relaxed);
    before != process && RUNNING.compare_exchange(before, process, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Prints a notice or an error on standard error; write errors are ignored.
fn print_notice(notice: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "tracepoint: {notice}");
}
