//! The server's thread: receives, sends as much as possible, sleeps.

use super::dispatcher::Dispatcher;
use super::ingest::{Ingest, TraceClock};
use super::queue::PacketQueue;
use super::session::{NextStep, earlier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_wire::udp::client::LONGEST;

/// Number of datagrams received from a socket before something is sent.
const RECEIVE_BATCH: usize = 256;
/// Maximum time of a sleep.
const MAX_SLEEP: Duration = Duration::from_secs(1);
/// Time for the end of a session after it was cut off.
const END_TIMEOUT: Duration = Duration::from_secs(4);

/// The state of the thread.
pub(super) struct Worker {
    pub(super) dispatcher: Dispatcher,
    pub(super) ingest: Option<Ingest>,
    pub(super) clock: TraceClock,
    pub(super) queue: Arc<PacketQueue>,
    pub(super) flush: Duration,
    pub(super) linger: Duration,
}

/// Ends the queue when the thread ends, even by a panic: a thread that waits for space in the queue must not wait forever.
struct QuitGuard<'a>(&'a PacketQueue);

impl Drop for QuitGuard<'_> {
    fn drop(&mut self) {
        self.0.quit();
    }
}

/// Returns whether messages are read now.
fn takes(ingest: &Ingest, queue: &PacketQueue) -> bool {
    !ingest.can_wait() || queue.has_space()
}

impl Worker {
    pub(super) fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let _quit = QuitGuard(&queue);
        let mut buffer = [0; LONGEST + 1];
        let mut ended_at = None;
        let mut cut_off = false;
        loop {
            let now = Instant::now();
            self.ingest_messages();
            self.dispatcher.receive(&mut buffer, RECEIVE_BATCH, now);
            let next = self.dispatcher.pump(now);
            let (ended, quit) = {
                let state = self.queue.lock();
                (state.ended, state.quit)
            };
            if ended && ended_at.is_none() {
                ended_at = Some(now);
            }
            let deadline = ended_at.and_then(|ended| ended.checked_add(self.grace(cut_off)));
            let late = deadline.is_some_and(|deadline| now >= deadline);
            if quit || self.dispatcher.is_over() || (late && (cut_off || !self.dispatcher.is_serving())) {
                break;
            }
            if late {
                // Notify the client, if that does not take long.
                cut_off = true;
                self.dispatcher.requeue(now);
                self.queue.abandon();
                continue;
            }
            let wait = match next {
                // If another client has sent a command, its session starts at once.
                NextStep::Over { .. } => Some(now),
                NextStep::At(time) | NextStep::Blocked(time) => time,
            };
            let wait = earlier(wait, deadline);
            self.sleep(wait.map(|time| time.saturating_duration_since(now)), matches!(next, NextStep::Blocked(_)));
        }
        self.dispatcher.end(Instant::now());
    }

    /// Returns how long the server continues after the end of the trace.
    fn grace(&self, cut_off: bool) -> Duration {
        match (self.dispatcher.is_serving(), cut_off) {
            (false, _) => self.linger,
            (true, false) => self.flush,
            (true, true) => self.flush.saturating_add(END_TIMEOUT),
        }
    }

    fn ingest_messages(&mut self) {
        let Some(ingest) = &mut self.ingest else { return };
        if self.queue.lock().ended {
            self.ingest = None;
            return;
        }
        if !takes(ingest, &self.queue) {
            return;
        }
        if let Some(messages) = ingest.messages((self.clock)()) {
            self.queue.push_messages(messages);
        }
        if ingest.has_ended() {
            self.ingest = None;
            self.queue.lock().ingested.ended = true;
        }
    }

    /// Sleeps until there is input, or the time has passed.
    fn sleep(&self, time: Option<Duration>, blocked: bool) {
        let time = time.unwrap_or(MAX_SLEEP).min(MAX_SLEEP);
        let time = Timespec { tv_sec: time.as_secs().try_into().unwrap_or(1), tv_nsec: time.subsec_nanos().into() };
        let input = PollFlags::IN;
        let woken = self.queue.waker().source().ok();
        let mut sources: Vec<_> = woken.iter().map(|woken| PollFd::new(woken, input)).collect();
        sources.extend(self.dispatcher.listener().map(|listener| PollFd::new(listener, input)));
        if let Some(socket) = self.dispatcher.session_socket() {
            let flags = if blocked { input | PollFlags::OUT } else { input };
            sources.push(PollFd::from_borrowed_fd(socket, flags));
        }
        if let Some(ingest) = self.ingest.as_ref().filter(|ingest| takes(ingest, &self.queue)) {
            sources.extend(ingest.source().map(|source| PollFd::from_borrowed_fd(source, input)));
        }
        // After EINTR or ENOMEM, check the sources as after a timeout.
        let _ = poll(&mut sources, Some(&time));
        self.queue.waker().clear();
    }
}
