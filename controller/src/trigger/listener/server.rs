//! The listener's thread that serves clients and subscribers, and stores the postponed actions.

use super::super::peer::peer_of;
use super::connection::{Connection, Progress};
use super::subscriber::Subscriber;
use super::work::{FromWorker, Job, Task};
use super::{Report, ReportKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};
use tracepoint_run_dir::group::group;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::trigger::{FiredTrigger, Notification, PostponedActions};

/// Maximum number of clients that are served at the same time, not counting subscribers.
pub(super) const MAX_CLIENTS: usize = 64;
/// Maximum number of subscribers.
const MAX_SUBSCRIBERS: usize = 64;
/// Pause after a connection could not be accepted, for example for lack of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Server<'a, R> {
    socket: &'a OwnedFd,
    wake: &'a OwnedFd,
    results: Receiver<FromWorker>,
    clients: BTreeMap<u64, Connection>,
    subscribers: BTreeMap<u64, Subscriber>,
    /// The number of the next client, or of the next postponed actions.
    next: u64,
    postponed: BTreeMap<(Instant, u64), PostponedActions>,
    /// The time before which no connection is accepted.
    accepts_at: Instant,
    report: R,
}

#[derive(Default)]
struct Ready {
    end: bool,
    socket: bool,
    clients: Vec<u64>,
    subscribers: Vec<u64>,
}

impl<'a, R: FnMut(Report)> Server<'a, R> {
    pub(super) fn new(socket: &'a OwnedFd, wake: &'a OwnedFd, results: Receiver<FromWorker>, report: R) -> Self {
        Self {
            socket,
            wake,
            results,
            clients: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            next: 0,
            postponed: BTreeMap::new(),
            accepts_at: Instant::now(),
            report,
        }
    }

    /// Serves until `end` becomes readable.
    pub(super) fn run(&mut self, end: BorrowedFd<'_>, jobs: &Sender<Job>) -> io::Result<()> {
        loop {
            self.close_late();
            self.begin_postponed(Instant::now(), jobs);
            let ready = self.wait(end)?;
            if ready.end {
                return Ok(());
            }
            let _ = rustix::io::read(self.wake, &mut [0; 8]);
            while let Ok(message) = self.results.try_recv() {
                if let Some(id) = self.receive(message) {
                    self.turn(id, jobs);
                }
            }
            if ready.socket {
                self.accept();
            }
            for id in ready.clients {
                self.turn(id, jobs);
            }
            for id in ready.subscribers {
                if self.subscribers.get_mut(&id).is_some_and(|subscriber| !subscriber.go_on()) {
                    self.subscribers.remove(&id);
                }
            }
        }
    }

    /// Waits for the actions that have begun, calls `perform` for postponed ones, and answers the waiting clients as far as they read the
    /// answers. Their further messages are not read. The workers end after the queued jobs.
    pub(super) fn finish(&mut self, perform: impl Fn(PostponedActions) -> Result<Vec<FiredTrigger>, ControlError>) {
        while let Ok(message) = self.results.recv() {
            if let Some(client) = self.receive(message).and_then(|id| self.clients.get_mut(&id)) {
                let _ = client.write();
            }
        }
        for postponed in std::mem::take(&mut self.postponed).into_values() {
            let job = Job { client: None, task: Task::Postponed(postponed.clone()) };
            self.answer(job, perform(postponed));
        }
    }

    fn begin_postponed(&mut self, now: Instant, jobs: &Sender<Job>) {
        while let Some(first) = self.postponed.first_entry().filter(|first| first.key().0 <= now) {
            let _ = jobs.send(Job { client: None, task: Task::Postponed(first.remove()) });
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
        let first_subscriber = fds.len();
        fds.extend(self.subscribers.values().map(|subscriber| {
            let more = if subscriber.waits_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            PollFd::new(&subscriber.fd, PollFlags::IN | more)
        }));
        let pause = (!accepts && !is_full).then_some(self.accepts_at);
        let later = self.postponed.keys().next().map(|(at, _)| *at);
        let next = waiting().map(|(_, client, _)| client.deadline).chain(pause).chain(later).min();
        let timeout = next.map(|at| {
            // Rounded up, so that the deadline has passed when the wait ends.
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
        let subscribers = self.subscribers.keys().zip(&fds[first_subscriber..]);
        let subscribers = subscribers.filter(|(_, fd)| is_ready(fd)).map(|(id, _)| *id).collect();
        Ok(Ready { end: is_ready(&fds[0]), socket: accepts && is_ready(&fds[2]), clients, subscribers })
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

    /// Serves the client if its user is this one, root, or in the group that shares the run directory.
    fn admit(&mut self, fd: OwnedFd) {
        let Ok(peer) = peer_of(&fd) else { return };
        let pid = u32::try_from(peer.pid).unwrap_or(0);
        if is_trusted(&peer) {
            self.clients.insert(self.next, Connection::new(fd, pid, Instant::now()));
            self.next += 1;
            return;
        }
        #[expect(clippy::host_endian_bytes, reason = "the socket is local: answers have the byte order of the host")]
        // The client need not wait for the answer.
        let _ = send(&fd, &(-Errno::PERM.raw_os_error()).to_ne_bytes(), SendFlags::NOSIGNAL);
        (self.report)(Report { sender: pid, kind: ReportKind::OtherUser(peer.uid) });
    }

    /// Serves a client as far as possible without blocking.
    fn turn(&mut self, id: u64, jobs: &Sender<Job>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let sender = client.pid;
        let mut may_read = true;
        loop {
            let kind = match client.go_on(&mut may_read) {
                Progress::Waits => return,
                Progress::Task(task) => {
                    // The workers live as long as this sender.
                    let _ = jobs.send(Job { client: Some(id), task: *task });
                    return;
                }
                Progress::Subscribes(_) if self.subscribers.len() >= MAX_SUBSCRIBERS => {
                    client.answer(-Errno::USERS.raw_os_error());
                    let reason = format!("there are {MAX_SUBSCRIBERS} subscribers already");
                    (self.report)(Report { sender, kind: ReportKind::Refused(reason, -Errno::USERS.raw_os_error()) });
                    continue;
                }
                Progress::Subscribes(session) => {
                    client.answer(0);
                    self.subscribe(id, session);
                    return;
                }
                Progress::Refused(message, answer) => {
                    (self.report)(Report { sender, kind: ReportKind::Refused(message, answer) });
                    continue;
                }
                Progress::Closed(reason) => reason.map(ReportKind::Closed),
            };
            self.clients.remove(&id);
            if let Some(kind) = kind {
                (self.report)(Report { sender, kind });
            }
            return;
        }
    }

    /// Converts a client to a subscriber.
    fn subscribe(&mut self, id: u64, session: Option<String>) {
        let Some(client) = self.clients.remove(&id) else { return };
        let sender = client.pid;
        let (fd, first) = client.into_parts();
        let mut subscriber = Subscriber::new(fd, session.clone(), first);
        if subscriber.write() {
            self.subscribers.insert(id, subscriber);
            (self.report)(Report { sender, kind: ReportKind::Subscriber(session) });
        }
    }

    /// Processes the message of a worker; returns the client that it has an answer for.
    fn receive(&mut self, message: FromWorker) -> Option<u64> {
        match message {
            FromWorker::Done(job, fired) => self.answer(job, fired),
            FromWorker::Notify(notification) => {
                self.notify(&notification);
                None
            }
            FromWorker::Postpone(until, postponed) => {
                self.postponed.insert((until, self.next), postponed);
                self.next += 1;
                None
            }
        }
    }

    fn notify(&mut self, notification: &Notification) {
        self.subscribers.retain(|_, subscriber| subscriber.notify(notification));
    }

    /// Reports the result of a job, and queues its answer. The client may have disconnected.
    fn answer(&mut self, job: Job, fired: Result<Vec<FiredTrigger>, ControlError>) -> Option<u64> {
        let Job { client, task } = job;
        let (answer, fired) = match fired {
            Ok(fired) => (fired.iter().find_map(FiredTrigger::failed_with).map_or(0, answer), fired),
            Err(_) => (-Errno::IO.raw_os_error(), Vec::new()),
        };
        let connection = client.and_then(|id| self.clients.get_mut(&id));
        let sender = connection.as_ref().map_or(0, |client| client.pid);
        let kind = match task {
            Task::CoreDump(core) => ReportKind::CoreDump(core, fired, answer),
            Task::Fire(request) => ReportKind::Occurred(request.session, request.occurrence, fired, answer),
            Task::Condition(seen) => ReportKind::Occurred(seen.session, seen.occurrence, fired, answer),
            Task::Postponed(_) => ReportKind::Later(fired),
        };
        (self.report)(Report { sender, kind });
        connection?.answer(answer);
        client
    }

    fn close_late(&mut self) {
        let now = Instant::now();
        let report = &mut self.report;
        self.clients.retain(|_, client| {
            let is_late = client.is_late(now);
            if is_late {
                let reason = "it sent no whole message, or did not read its answer, for 10 s".to_owned();
                report(Report { sender: client.pid, kind: ReportKind::Closed(reason) });
            }
            !is_late
        });
    }
}

fn is_trusted(peer: &libc::ucred) -> bool {
    let is_groups = group().is_some_and(|group| group.as_raw() == peer.gid);
    peer.uid == rustix::process::geteuid().as_raw() || peer.uid == 0 || is_groups
}

/// Returns the answer for a failed action. It never equals the answers to refused messages.
fn answer(errno: i32) -> i32 {
    match Errno::from_raw_os_error(errno) {
        Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP => -Errno::IO.raw_os_error(),
        _ => -errno.saturating_abs(),
    }
}
