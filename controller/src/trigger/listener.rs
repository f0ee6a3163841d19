//! The listener: owns the notification socket, acts on what it receives, and watches what processes cannot notice themselves.
//!
//! ```text
//!   clients ─────▶ one thread: accepts, decodes, answers (poll) ──jobs──▶ workers: TriggerRunner
//!   subscribers ◀──        ▲                                                 │      ▲
//!                          └──────── results, notifications, later ──────────┘      │ jobs
//!   processes, outputs ─▶ watcher ──────────────────────────────────────────────────┘
//! ```
//!
//! No client can delay another: the thread that reads never blocks, each client has a bounded buffer and 10 s for a message, and the
//! actions, which take as long as a snapshot takes, are done by up to [`WORKERS`] threads. At most [`server::MAX_CLIENTS`] are served at a
//! time; further ones wait in the socket's queue.

mod connection;
mod server;
mod subscriber;
mod work;

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
use tracepoint_session_io::trigger::CoreDump;
use tracepoint_session_io::trigger::Facilities;
use tracepoint_session_io::trigger::FiredTrigger;
use tracepoint_session_io::trigger::Occurrence;
use tracepoint_session_io::trigger::Programs;
use tracepoint_session_io::trigger::TriggerError;
use tracepoint_sinks::own_thread::leave_signals_to_the_program;
use work::{Job, Task, ToServer, perform, work};

/// How many messages are acted on at a time.
const WORKERS: usize = 4;
/// How long to wait at the end for programs that triggers have started. Those that run longer run on.
const PROGRAMS_TIMEOUT: Duration = Duration::from_secs(2);

/// What a listener has received, or noticed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The process that sent it, in this pid namespace; 0 if it is in another one, or if the listener has noticed it itself.
    pub sender: u32,
    /// What it was.
    pub received: Received,
}

/// What a listener has received from a client, or noticed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Received {
    /// A core dump, what the triggers did, and the answer: 0, or the negative error number of the first action that failed.
    CoreDump(CoreDump, Vec<FiredTrigger>, i32),
    /// Another condition of a session has occurred, what the triggers did, and the answer.
    Occurred(String, Occurrence, Vec<FiredTrigger>, i32),
    /// Actions that were postponed (`--after`) have been done.
    Later(Vec<FiredTrigger>),
    /// A subscriber of the notifications of a session, or of all.
    Subscriber(Option<String>),
    /// A message that it cannot use, and the negative error number that it answered.
    Refused(String, i32),
    /// The connection of a client of another user was refused: its user id.
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
    /// Makes the socket. One that a killed listener has left is replaced. What happens to processes from now on is noticed as soon as it
    /// [serves](Self::serve).
    ///
    /// # Errors
    ///
    /// [`TriggerError::Listening`] if another process listens; [`TriggerError::Socket`] if the socket cannot be made.
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

    /// Serves clients and watches the sessions until `end` can be read, and calls `report` for each message and each condition. Then finishes
    /// the actions that were begun, does those that were postponed, and answers the clients that wait for them.
    ///
    /// # Errors
    ///
    /// If the system refuses to wait for the sockets, or a thread.
    pub fn serve(&mut self, end: BorrowedFd<'_>, report: impl FnMut(Report)) -> io::Result<()> {
        let new_event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (wake, stop) = (Arc::new(new_event()?), new_event()?);
        let ((jobs, queue), (sender, results)) = (channel(), channel());
        let queue = Mutex::new(queue);
        let Self { socket, run_dir, programs: own_programs, watcher } = self;
        let run_dir = run_dir.as_path();
        let programs = Some(own_programs.clone());
        let at_the_end = Facilities { programs: programs.clone(), listening: None };
        let to_server = ToServer { sender, wake: Arc::clone(&wake) };
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                let (server, queue, run_dir) = (to_server.clone(), &queue, run_dir);
                let facilities = Facilities { programs: programs.clone(), listening: Some(Arc::new(server.clone())) };
                thread::Builder::new().name("tracepoint-trigger".to_owned()).spawn_scoped(scope, move || {
                    leave_signals_to_the_program();
                    work(queue, &server, run_dir, &facilities);
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

/// Has the workers act on what the watcher notices, until `stop` can be read.
fn pass_on(watcher: &mut Watcher, stop: BorrowedFd<'_>, jobs: &Sender<Job>) {
    while let Some(seen) = watcher.next(stop) {
        for seen in seen {
            // The workers live as long as this sender.
            let _ = jobs.send(Job { client: None, task: Task::Seen(seen) });
        }
    }
}

fn write_one(event: &OwnedFd) {
    #[expect(clippy::host_endian_bytes, reason = "the kernel takes a number")]
    // Fails only if the counter is at its maximum.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}
