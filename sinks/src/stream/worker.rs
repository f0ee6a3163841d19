//! The sender's thread: connects, runs a session with the peer, and reconnects when the connection is lost.
//!
//! ```text
//!   connecting ──▶ serving ──the recording has ended, all is sent──▶ over
//!     ▲   │           │
//!     │   └─refused─┐ │lost
//!     └──pause──────┴─┘  100 ms, doubled up to 5 s; until the peer refuses for good, or the time for the rest is up
//! ```

use super::collector::Kept;
use super::options::StreamOptions;
use super::peer::Peer;
use super::queue::{Queue, State};
use super::session::{ConnectionError, Identity, NextStep};
use super::streams::Streams;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time of a sleep.
const MAX_SLEEP: Duration = Duration::from_secs(1);
/// Timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum and maximum pause before another attempt.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Time for a peer to report its packets after the time for sending is over.
const GIVE_UP_TIMEOUT: Duration = Duration::from_millis(1500);
/// Advice in the error for a peer that cannot be reached.
const ADVICE: &str =
    "start `tracectl collect` or lttng-relayd there, or have the recording wait for it (`--retry TIME`, `--wait`)";
#[cfg(feature = "nats")]
const BROKER_ADVICE: &str =
    "start `nats-server -js` there, or have the recording wait for it (`--retry TIME`, `--wait`)";

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) queue: Arc<Queue>,
    pub(super) options: StreamOptions,
    pub(super) identity: Identity,
    streams: Streams,
    /// State that outlives a connection to a collector.
    kept: Kept,
    connections: u64,
    /// When the time for sending the rest is over; after that, when the time for asking the peer which packets it has is over.
    deadline: Option<Instant>,
    gives_up: bool,
}

/// Notifies the drain when the thread has ended, even by a panic: the drain must not wait for it.
struct OverGuard<'a>(&'a Queue);

impl Drop for OverGuard<'_> {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.end();
            state.over = true;
            state.stats.peer = None;
        });
    }
}

impl Worker {
    pub(super) fn new(queue: Arc<Queue>, options: StreamOptions, identity: Identity) -> std::io::Result<Self> {
        let (streams, kept) = (Streams::default(), Kept::new()?);
        Ok(Self { queue, options, identity, streams, kept, connections: 0, deadline: None, gives_up: false })
    }

    pub(super) fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let _over = OverGuard(&queue);
        self.connect_and_serve();
    }

    /// Runs until everything is sent, or nothing can be.
    fn connect_and_serve(&mut self) {
        let queue = Arc::clone(&self.queue);
        let began = Instant::now();
        let mut pause = MIN_PAUSE;
        loop {
            let deadline = Instant::now() + CONNECT_TIMEOUT;
            let kept = (&mut self.kept, &*queue);
            let own = (&self.options, &self.identity);
            let connected = Peer::connect(own, kept, &self.streams, self.connections + 1, deadline);
            let error = match connected {
                Ok(peer) => {
                    self.connected(&peer);
                    match self.serve(peer, &mut pause) {
                        None => return,
                        Some(error) => error,
                    }
                }
                Err(error) => error,
            };
            let is_tried = self.options.retry.is_some_and(|time| began.elapsed() + pause > time);
            let gives_up = self.connections == 0 && is_tried;
            let is_final = self.lost(&error, gives_up);
            if is_final || self.pause(pause) {
                return;
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn connected(&mut self, peer: &Peer) {
        self.connections += 1;
        let (peer, connections) = (format!("{} at {}", peer.name(), self.options.peer()), self.connections);
        self.queue.change(|state| {
            (state.stats.peer, state.stats.trouble, state.stats.connections) = (Some(peer), None, connections);
        });
    }

    /// Records why the connection failed. Returns whether no more attempts are made.
    fn lost(&self, error: &ConnectionError, gives_up: bool) -> bool {
        let (text, is_final) = match error {
            #[cfg(feature = "nats")]
            ConnectionError::Temporary(error) if gives_up && self.options.broker.is_some() => {
                (format!("{error}; {BROKER_ADVICE}"), true)
            }
            ConnectionError::Temporary(error) if gives_up => (format!("{error}; {ADVICE}"), true),
            ConnectionError::Temporary(error) => (error.to_string(), false),
            ConnectionError::Final(text) => (text.clone(), true),
        };
        self.queue.change(|state: &mut State| {
            state.refused = is_final.then(|| text.clone());
            (state.stats.peer, state.stats.trouble) = (None, Some(text));
        });
        is_final
    }

    /// Runs a session until everything is sent (`None`) or the connection is lost.
    fn serve(&mut self, mut peer: Peer, pause: &mut Duration) -> Option<ConnectionError> {
        let queue = Arc::clone(&self.queue);
        loop {
            let now = Instant::now();
            if peer.takes_packets() {
                *pause = MIN_PAUSE;
            }
            let next = match peer.advance(&queue, (&mut self.streams, &mut self.kept), now) {
                Ok(NextStep::Over) => return None,
                Ok(NextStep::At(time)) => time,
                Err(error) => {
                    peer.abandon(&queue, &mut self.streams);
                    return Some(error);
                }
            };
            if self.must_end(now) {
                let asks = !self.gives_up && !queue.lock().quit && peer.give_up(&queue, &mut self.streams);
                if !asks {
                    peer.abandon(&queue, &mut self.streams);
                    return None;
                }
                (self.gives_up, self.deadline) = (true, Some(now + GIVE_UP_TIMEOUT));
                continue;
            }
            let wait = next.map_or(MAX_SLEEP, |time| time.saturating_duration_since(now));
            self.sleep(wait, peer.sources());
        }
    }

    /// Returns whether the time for sending the rest is over.
    fn must_end(&mut self, now: Instant) -> bool {
        let state = self.queue.lock();
        let (ended, quit) = (state.ended, state.quit);
        drop(state);
        let flush = self.options.flush;
        let deadline = ended.then(|| *self.deadline.get_or_insert(now + flush));
        quit || deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Waits before another attempt. Returns whether the thread must end instead.
    fn pause(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            let now = Instant::now();
            if self.must_end(now) {
                return true;
            }
            if now >= until {
                return false;
            }
            self.sleep(until - now, Vec::new());
        }
    }

    /// Sleeps until a source or the queue is ready, or the time has passed.
    fn sleep(&self, time: Duration, sources: Vec<PollFd<'_>>) {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = time.min(MAX_SLEEP).min(left.unwrap_or(MAX_SLEEP));
        let woken = self.queue.waker().source().ok();
        let woken = woken.iter().map(|woken| PollFd::new(woken, PollFlags::IN));
        let mut sources: Vec<_> = woken.chain(sources).collect();
        // After EINTR or ENOMEM, check the sources as after a timeout.
        let _ = poll(&mut sources, Timespec::try_from(time).ok().as_ref());
        self.queue.waker().clear();
    }
}
