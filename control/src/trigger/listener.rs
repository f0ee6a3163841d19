//! The listener: owns the notification socket, and acts on what it receives.
//!
//! ```text
//!   clients ──▶ one thread: accepts, decodes, answers (poll) ──messages──▶ workers: TriggerRunner
//!                          ▲                                                  │
//!                          └──────────────── results ─────────────────────────┘
//! ```
//!
//! No client can delay another: the thread that reads never blocks, each client has a bounded buffer and 10 s for a message, and the
//! actions, which take as long as a snapshot takes, are done by up to [`WORKERS`] threads. At most [`MAX_CLIENTS`] are served at a time;
//! further ones wait in the socket's queue.

mod connection;

use super::error::TriggerError;
use super::message::CoreDump;
use super::runner::{FiredTrigger, TriggerRunner};
use super::socket::{OwnedSocket, peer};
use crate::controller::{ControlError, Controller};
use crate::group::group;
use crate::rundir::RunDir;
use connection::{Connection, Progress};
use nix::sys::socket::UnixCredentials;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many clients are served at a time.
const MAX_CLIENTS: usize = 64;
/// How many messages are acted on at a time.
const WORKERS: usize = 4;
/// How long to leave the socket alone if no connection can be accepted, for example because there is no descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener has received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The process that sent it, in this pid namespace; 0 if it is in another one.
    pub sender: u32,
    /// What it was.
    pub received: Received,
}

/// What a listener has received from a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Received {
    /// A core dump, what the triggers did, and the answer: 0, or the negative error number of the first action that failed.
    CoreDump(CoreDump, Vec<FiredTrigger>, i32),
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
}

impl Listener {
    /// Makes the socket. One that a killed listener has left is replaced.
    ///
    /// # Errors
    ///
    /// [`TriggerError::Listening`] if another process listens; [`TriggerError::Socket`] if the socket cannot be made.
    pub fn bind(run_dir: RunDir) -> Result<Self, TriggerError> {
        let path = run_dir.path().to_owned();
        Ok(Self { socket: OwnedSocket::bind(run_dir.into_dir())?, run_dir: path })
    }

    /// The path of the socket.
    pub fn path(&self) -> PathBuf {
        self.socket.path()
    }

    /// Serves clients until `end` can be read, and calls `report` for each message. Then finishes the actions that were begun, and answers
    /// them.
    ///
    /// # Errors
    ///
    /// If the system refuses to wait for the sockets.
    pub fn serve(&mut self, end: BorrowedFd<'_>, report: impl FnMut(Report)) -> io::Result<()> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let ((jobs, queue), (results, done)) = (channel(), channel());
        let queue = Mutex::new(queue);
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                let (results, queue, wake, run_dir) = (results.clone(), &queue, &wake, &self.run_dir);
                thread::Builder::new()
                    .name("tracepoint-trigger".to_owned())
                    .spawn_scoped(scope, move || work(queue, &results, wake, run_dir))?;
            }
            drop(results);
            let mut server = Server {
                socket: &self.socket.fd,
                wake: &wake,
                done,
                clients: BTreeMap::new(),
                next: 0,
                accepts_at: Instant::now(),
                report,
            };
            let result = server.run(end, &jobs);
            // The workers end when they have done what is queued.
            drop(jobs);
            while let Ok(job) = server.done.recv() {
                if let Some(client) = server.finish(job) {
                    // The client is answered as far as it takes the answer; its further messages are not read.
                    let _ = client.write();
                }
            }
            result
        })
    }
}

/// A message for the workers, and the client that it is from.
struct Job {
    client: u64,
    core: CoreDump,
}

/// A job that was done.
struct DoneJob {
    client: u64,
    core: CoreDump,
    fired: Result<Vec<FiredTrigger>, ControlError>,
}

fn work(queue: &Mutex<Receiver<Job>>, results: &Sender<DoneJob>, wake: &OwnedFd, run_dir: &Path) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { client, core }) = next else { return };
        let opened = RunDir::open(run_dir).map_err(ControlError::from).and_then(Controller::at);
        let fired = opened.and_then(|controller| TriggerRunner::new(controller).run(&core));
        if results.send(DoneJob { client, core, fired }).is_err() {
            return;
        }
        #[expect(clippy::host_endian_bytes, reason = "the kernel takes a number")]
        // Fails only if the counter is at its maximum, and then the server is awake.
        let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
    }
}

/// What the serving thread has.
struct Server<'a, R> {
    socket: &'a OwnedFd,
    wake: &'a OwnedFd,
    done: Receiver<DoneJob>,
    clients: BTreeMap<u64, Connection>,
    /// The number of the next client.
    next: u64,
    /// Before that time the socket is left alone.
    accepts_at: Instant,
    report: R,
}

impl<R: FnMut(Report)> Server<'_, R> {
    fn run(&mut self, end: BorrowedFd<'_>, jobs: &Sender<Job>) -> io::Result<()> {
        loop {
            self.close_late();
            let ready = self.wait(end)?;
            if ready.end {
                return Ok(());
            }
            let _ = rustix::io::read(self.wake, &mut [0; 8]);
            while let Ok(job) = self.done.try_recv() {
                let id = job.client;
                if self.finish(job).is_some() {
                    self.turn(id, jobs);
                }
            }
            if ready.socket {
                self.accept();
            }
            for id in ready.clients {
                self.turn(id, jobs);
            }
        }
    }

    /// Waits until something can be done.
    fn wait(&mut self, end: BorrowedFd<'_>) -> io::Result<Ready> {
        let now = Instant::now();
        let is_full = self.clients.len() >= MAX_CLIENTS;
        let accepts = !is_full && now >= self.accepts_at;
        let waiting = || self.clients.iter().filter_map(|(id, client)| Some((*id, client, client.waits_to_write()?)));
        let mut fds = vec![PollFd::from_borrowed_fd(end, PollFlags::IN), PollFd::new(self.wake, PollFlags::IN)];
        fds.extend(accepts.then(|| PollFd::new(self.socket, PollFlags::IN)));
        let first = fds.len();
        let flags = |to_write| if to_write { PollFlags::OUT } else { PollFlags::IN };
        fds.extend(waiting().map(|(_, client, to_write)| PollFd::new(&client.fd, flags(to_write))));
        let pause = (!accepts && !is_full).then_some(self.accepts_at);
        let next = waiting().map(|(_, client, _)| client.deadline).chain(pause).min();
        let timeout = next.map(|at| {
            // Rounded up, so that the deadline has passed when the time is over.
            let left = at.saturating_duration_since(now) + Duration::from_millis(1);
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let clients = waiting().zip(&fds[first..]).filter(|(_, fd)| is_ready(fd)).map(|((id, ..), _)| id).collect();
        Ok(Ready { end: is_ready(&fds[0]), socket: accepts && is_ready(&fds[2]), clients })
    }

    fn accept(&mut self) {
        while self.clients.len() < MAX_CLIENTS {
            match accept_with(self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => self.admit(fd),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                // Out of descriptors or memory.
                Err(_) => {
                    self.accepts_at = Instant::now() + ACCEPT_PAUSE;
                    return;
                }
            }
        }
    }

    /// Serves the client if it is of this user, of root, or of the group that shares the run directory.
    fn admit(&mut self, fd: OwnedFd) {
        let Ok(peer) = peer(&fd) else { return };
        let pid = u32::try_from(peer.pid()).unwrap_or(0);
        if is_trusted(&peer) {
            self.clients.insert(self.next, Connection::new(fd, pid, Instant::now()));
            self.next += 1;
            return;
        }
        #[expect(clippy::host_endian_bytes, reason = "the socket is local: answers have the byte order of the host")]
        // The client need not wait for the answer.
        let _ = send(&fd, &(-Errno::PERM.raw_os_error()).to_ne_bytes(), SendFlags::NOSIGNAL);
        (self.report)(Report { sender: pid, received: Received::OtherUser(peer.uid()) });
    }

    /// Serves a client as far as that is possible without blocking.
    fn turn(&mut self, id: u64, jobs: &Sender<Job>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let sender = client.pid;
        let mut may_read = true;
        loop {
            let received = match client.go_on(&mut may_read) {
                Progress::Waits => return,
                Progress::Message(core) => {
                    // The workers live as long as this sender.
                    let _ = jobs.send(Job { client: id, core });
                    return;
                }
                Progress::Refused(message, answer) => {
                    (self.report)(Report { sender, received: Received::Refused(message, answer) });
                    continue;
                }
                Progress::Closed(reason) => reason.map(Received::Closed),
            };
            self.clients.remove(&id);
            if let Some(received) = received {
                (self.report)(Report { sender, received });
            }
            return;
        }
    }

    /// Reports what became of a message, and enters its answer. The client may have gone.
    fn finish(&mut self, job: DoneJob) -> Option<&mut Connection> {
        let (answer, fired) = match job.fired {
            Ok(fired) => (fired.iter().find_map(FiredTrigger::failed_with).map_or(0, answer), fired),
            Err(_) => (-Errno::IO.raw_os_error(), Vec::new()),
        };
        let client = self.clients.get_mut(&job.client);
        let sender = client.as_ref().map_or(0, |client| client.pid);
        (self.report)(Report { sender, received: Received::CoreDump(job.core, fired, answer) });
        let client = client?;
        client.answer(answer);
        Some(client)
    }

    fn close_late(&mut self) {
        let now = Instant::now();
        let report = &mut self.report;
        self.clients.retain(|_, client| {
            let is_late = client.is_late(now);
            if is_late {
                let reason = "it sent no whole message, or did not read its answer, for 10 s".to_owned();
                report(Report { sender: client.pid, received: Received::Closed(reason) });
            }
            !is_late
        });
    }
}

/// What [`Server::wait`] has found.
#[derive(Default)]
struct Ready {
    end: bool,
    socket: bool,
    clients: Vec<u64>,
}

fn is_trusted(peer: &UnixCredentials) -> bool {
    let is_groups = group().is_some_and(|group| group.as_raw() == peer.gid());
    peer.uid() == rustix::process::geteuid().as_raw() || peer.uid() == 0 || is_groups
}

/// The answer for a failed action. The numbers that stand for refused messages are not used for it.
fn answer(errno: i32) -> i32 {
    match Errno::from_raw_os_error(errno) {
        Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP => -Errno::IO.raw_os_error(),
        _ => -errno.saturating_abs(),
    }
}
