//! The listener: owns the notification socket, acts on received messages, and watches for conditions that processes cannot detect
//! themselves.
//!
//! ```text
//!   clients ─────▶ one thread: accepts, decodes, answers (poll) ──jobs──▶ workers: TriggerRunner
//!   subscribers ◀──        ▲                                                 │      ▲
//!                          └──────── results, notifications, later ──────────┘      │ jobs
//!   processes, outputs ─▶ watcher ──────────────────────────────────────────────────┘
//! ```
//!
//! No client can delay another: the reading thread never blocks, each client has a bounded buffer and 10 s for a message, and up to
//! [`WORKERS`] threads perform the actions, each of which takes as long as a snapshot. At most [`server::MAX_CLIENTS`] are served at the
//! same time; further ones wait in the socket's queue.

mod connection;
mod server;
mod subscriber;
mod work;

use super::programs::Programs;
use super::socket::OwnedSocket;
use super::watch::Watcher;
use rustix::event::{EventfdFlags, eventfd};
use server::Server;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::trigger::{ActionContext, CoreDump, FiredTrigger, Occurrence, ProgramStarter, TriggerError};
use tracepoint_sinks::own_thread::leave_signals_to_the_program;
use work::{Job, Task, ToServer, perform, work};

/// Maximum number of messages that are acted on at the same time.
const WORKERS: usize = 4;
/// Maximum time to wait at the end for programs that triggers have started. Programs that take longer keep running.
const PROGRAMS_TIMEOUT: Duration = Duration::from_secs(2);

/// A message or condition that a listener has received or detected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The process that sent it, in this pid namespace; 0 if it is in another one, or if the listener detected the condition itself.
    pub sender: u32,
    /// The message, or the condition.
    pub kind: ReportKind,
}

/// A message that a listener has received from a client, or a condition that it has detected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReportKind {
    /// A core dump, the results of the triggers, and the answer: 0, or the negative error number of the first action that failed.
    CoreDump(CoreDump, Vec<FiredTrigger>, i32),
    /// Another condition of a session, the results of the triggers, and the answer.
    Occurred(String, Occurrence, Vec<FiredTrigger>, i32),
    /// Actions that were postponed (`--after`) have been done.
    Later(Vec<FiredTrigger>),
    /// A new subscriber of the notifications of a session, or of all sessions.
    Subscriber(Option<String>),
    /// An unusable message, and the negative error number of the answer.
    Refused(String, i32),
    /// A client of another user, whose connection was refused: its user id.
    OtherUser(u32),
    /// The connection was closed for this reason.
    Closed(String),
}

/// Owns the notification socket of a run directory.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedSocket,
    run_dir: PathBuf,
    programs: Programs,
    watcher: Watcher,
}

impl Listener {
    /// Creates the socket, and replaces one that a killed listener has left. Ends of processes from now on are detected as soon as it
    /// [serves](Self::serve).
    ///
    /// # Errors
    ///
    /// [`TriggerError::Listening`] if another process listens; [`TriggerError::Socket`] if the socket cannot be created.
    pub fn bind(run_dir: RunDir) -> Result<Self, TriggerError> {
        let path = run_dir.path().to_owned();
        let socket = OwnedSocket::bind(run_dir.into_dir())?;
        let watcher = Watcher::new(&path, None);
        Ok(Self { socket, run_dir: path, programs: Programs::new(true), watcher })
    }

    /// The path of the socket.
    pub fn path(&self) -> PathBuf {
        self.socket.path()
    }

    /// Serves clients and watches the sessions until `end` becomes readable, and calls `report` for each message and each condition. Then
    /// finishes the actions that have begun, performs the postponed ones, and answers the clients that wait for them.
    ///
    /// # Errors
    ///
    /// If the system cannot wait for the sockets, or cannot create a thread.
    pub fn serve(&mut self, end: BorrowedFd<'_>, report: impl FnMut(Report)) -> io::Result<()> {
        let new_event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (wake, stop) = (Arc::new(new_event()?), new_event()?);
        let ((jobs, queue), (sender, results)) = (channel(), channel());
        let queue = Mutex::new(queue);
        let Self { socket, run_dir, programs: own_programs, watcher } = self;
        let run_dir = run_dir.as_path();
        let programs: Option<Arc<dyn ProgramStarter>> = Some(Arc::new(own_programs.clone()));
        let at_the_end = ActionContext { programs: programs.clone(), listening: None };
        let to_server = ToServer { sender, wake: Arc::clone(&wake) };
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                let (server, queue, run_dir) = (to_server.clone(), &queue, run_dir);
                let context = ActionContext { programs: programs.clone(), listening: Some(Arc::new(server.clone())) };
                thread::Builder::new().name("tracepoint-trigger".to_owned()).spawn_scoped(scope, move || {
                    leave_signals_to_the_program();
                    work(queue, &server, run_dir, &context);
                })?;
            }
            // The results end with the workers.
            drop(to_server);
            let (stop_watching, seen) = (stop.as_fd(), jobs.clone());
            let watch = move || {
                leave_signals_to_the_program();
                pass_on(watcher, stop_watching, &seen);
            };
            thread::Builder::new().name("tracepoint-watch".to_owned()).spawn_scoped(scope, watch)?;
            let mut server = Server::new(&socket.fd, &wake, results, report);
            let result = server.run(end, &jobs);
            write_one(&stop);
            drop(jobs);
            server.finish(|postponed| perform(&Task::Postponed(postponed), run_dir, &at_the_end));
            result
        })?;
        own_programs.wait(PROGRAMS_TIMEOUT);
        Ok(())
    }
}

/// Passes the conditions that the watcher detects to the workers, until `stop` becomes readable.
fn pass_on(watcher: &mut Watcher, stop: BorrowedFd<'_>, jobs: &Sender<Job>) {
    while let Some(seen) = watcher.next(stop) {
        for seen in seen {
            // The workers live as long as this sender.
            let _ = jobs.send(Job { client: None, task: Task::Condition(seen) });
        }
    }
}

fn write_one(event: &OwnedFd) {
    #[expect(clippy::host_endian_bytes, reason = "the kernel takes a number")]
    // Fails only if the counter is at its maximum.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}
