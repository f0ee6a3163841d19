//! What waits for a client: packets, within a limit; and what the server was told about the trace.
//!
//! The step before are the threads that bring packets, which never wait for the network; the step after is the server's thread.

use super::ingest::Messages;
use super::options::DropPolicy;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tracepoint_core::channel::StreamId;
use tracepoint_reader::Metadata;
use tracepoint_reader::internal::RecordSizes;
use tracepoint_reader::udp::wire::Losses;

/// A packet that waits, or is being sent.
#[derive(Debug)]
pub(super) struct QueuedPacket {
    pub(super) stream: StreamId,
    pub(super) bytes: Vec<u8>,
    /// How many events it holds.
    pub(super) events: u64,
    /// How many of these are behind us, sent or lost.
    pub(super) done: u64,
    /// How much of the metadata it takes to decode it.
    pub(super) needs: u32,
    /// Whether its events are from outside: their bytes are their text.
    pub(super) is_message: bool,
    /// Whether it was held back until there was room: it is not dropped.
    pub(super) kept: bool,
}

impl QueuedPacket {
    /// What it takes in memory.
    fn cost(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    pub(super) fn left(&self) -> u64 {
        self.events.saturating_sub(self.done)
    }
}

/// Why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LossReason {
    /// More waited than may.
    Limit,
    /// The server may not send faster.
    Rate,
    TooLarge,
    Unreadable,
    /// Nobody came for them.
    Unread,
}

impl LossReason {
    /// The name in the account.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Limit => "udp_limit",
            Self::Rate => "udp_rate",
            Self::TooLarge => "udp_too_large",
            Self::Unreadable => "udp_unreadable",
            Self::Unread => "udp_unread",
        }
    }
}

/// How the metadata lays out the records.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) metadata: Metadata,
    /// `None`: not as `tracepoint` does; such packets cannot be cut.
    pub(super) sizes: Option<RecordSizes>,
}

/// Whether somebody is being served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Serving {
    #[default]
    Nobody,
    Unlimited,
    /// No faster than a rate.
    Limited,
}

#[derive(Debug, Default)]
pub(super) struct State {
    queue: VecDeque<QueuedPacket>,
    bytes: usize,
    /// The metadata, and what it says, so far.
    pub(super) metadata: Vec<u8>,
    pub(super) layout: Option<Arc<Layout>>,
    /// The account; `None` while the trace goes on, or if there is none.
    pub(super) account: Option<Vec<u8>>,
    /// Nothing will be added any more.
    pub(super) ended: bool,
    /// No packet that is held back is taken any more.
    pub(super) closed: bool,
    /// The thread is to end at once.
    pub(super) quit: bool,
    pub(super) serving: Serving,
    /// How many events were brought.
    pub(super) given: u64,
    /// How many messages from outside became events, and how many were too long.
    pub(super) messages: u64,
    pub(super) overlong: u64,
    lost: BTreeMap<(StreamId, LossReason), u64>,
}

/// What the threads that bring packets and the server's thread share.
#[derive(Debug)]
pub(super) struct PacketQueue {
    state: Mutex<State>,
    room: Condvar,
    limit: usize,
    drops: DropPolicy,
    wake: OwnedFd,
}

impl PacketQueue {
    pub(super) fn new(limit: usize, drops: DropPolicy) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { state: Mutex::default(), room: Condvar::new(), limit, drops, wake })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes readable when there is something to do.
    pub(super) fn waker(&self) -> &OwnedFd {
        &self.wake
    }

    pub(super) fn wake(&self) {
        // Full of wakes already: it is awake.
        let _ = rustix::io::write(&self.wake, &[1; 8]);
    }

    /// Adds a packet, and drops what is over the limit. Never waits for a client.
    pub(super) fn push(&self, held: QueuedPacket) {
        let mut state = self.lock();
        self.add(&mut state, held);
        drop(state);
        self.wake();
    }

    fn add(&self, state: &mut State, held: QueuedPacket) {
        Self::insert(state, held);
        while state.bytes > self.limit {
            // A packet without events is small, and says what the stream lost: it goes last.
            let full = |held: &QueuedPacket| !held.kept && held.left() > 0;
            let place = match self.drops {
                DropPolicy::Oldest => state.queue.iter().position(full),
                DropPolicy::Newest => state.queue.iter().rposition(full),
            };
            let place = place.or_else(|| state.queue.iter().position(|held| !held.kept));
            let Some(dropped) = place.and_then(|place| state.queue.remove(place)) else { break };
            state.bytes = state.bytes.saturating_sub(dropped.cost());
            let reason = if state.serving == Serving::Limited { LossReason::Rate } else { LossReason::Limit };
            state.lose(dropped.stream, reason, dropped.left());
        }
    }

    fn insert(state: &mut State, held: QueuedPacket) {
        state.given += held.events;
        state.bytes += held.cost();
        state.queue.push_back(held);
    }

    /// Adds a packet when there is room for it, and keeps it whatever comes later. `false` if the server takes no more: it is lost.
    pub(super) fn push_blocking(&self, held: QueuedPacket) -> bool {
        let mut state = self.lock();
        while state.takes_more() && state.bytes > 0 && state.bytes + held.cost() > self.limit {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let goes_on = state.takes_more();
        if goes_on {
            Self::insert(&mut state, QueuedPacket { kept: true, ..held });
        } else {
            state.given += held.events;
            state.lose(held.stream, LossReason::Unread, held.left());
        }
        drop(state);
        self.wake();
        goes_on
    }

    /// What is held back is lost from here on, for nobody came for it in time.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
    }

    /// Takes the next packet. It counts as waiting until it is [`PacketQueue::finished`] or put back.
    pub(super) fn take(&self) -> Option<QueuedPacket> {
        self.lock().queue.pop_front()
    }

    /// A packet that was taken, and has been sent or lost.
    pub(super) fn finished(&self, held: &QueuedPacket) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(held.cost());
        self.room.notify_all();
    }

    /// Packets that were taken, and wait again, in this order, before all others.
    pub(super) fn put_back(&self, packets: impl DoubleEndedIterator<Item = QueuedPacket>) {
        let mut state = self.lock();
        for held in packets.rev() {
            state.queue.push_front(held);
        }
    }

    pub(super) fn lose(&self, stream: StreamId, reason: LossReason, events: u64) {
        self.lock().lose(stream, reason, events);
    }

    /// What still waits is lost, for nobody came for it in time.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        for held in std::mem::take(&mut state.queue) {
            state.bytes = state.bytes.saturating_sub(held.cost());
            state.lose(held.stream, LossReason::Unread, held.left());
        }
    }

    /// Adds messages from outside, unless the trace has ended: then they came too late.
    pub(super) fn push_messages(&self, messages: Messages) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.messages += messages.events;
        state.overlong = messages.overlong;
        let Messages { stream, packet: bytes, events, .. } = messages;
        let needs = state.metadata.len() as u32;
        self.add(&mut state, QueuedPacket { stream, bytes, events, done: 0, needs, is_message: true, kept: false });
    }

    /// Nothing will be added any more. `account` is asked for when that is so.
    pub(super) fn end(&self, account: impl FnOnce(&State) -> Option<Vec<u8>>) {
        let mut state = self.lock();
        state.account = account(&state);
        state.ended = true;
        drop(state);
        self.room.notify_all();
        self.wake();
    }

    /// Ends everything.
    pub(super) fn quit(&self) {
        self.lock().quit = true;
        self.abandon();
        self.room.notify_all();
        self.wake();
    }

    /// Bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().bytes
    }

    /// What was lost of a stream, by reason.
    pub(super) fn lost_of(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.lock().lost_of(stream)
    }
}

impl State {
    const fn takes_more(&self) -> bool {
        !self.quit && !self.ended && !self.closed
    }

    /// Packets that wait.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn lose(&mut self, stream: StreamId, reason: LossReason, events: u64) {
        if events > 0 {
            *self.lost.entry((stream, reason)).or_default() += events;
        }
    }

    /// What was lost of a stream, by reason.
    pub(super) fn lost_of(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.lost.iter().filter(|((of, _), _)| *of == stream).map(|((_, why), n)| (why.name(), *n)).collect()
    }

    /// All losses, as the protocol tells them.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = Losses { too_large: self.overlong, ..Losses::default() };
        for ((_, reason), events) in &self.lost {
            *match reason {
                LossReason::Limit | LossReason::Unread => &mut losses.limit,
                LossReason::Rate => &mut losses.rate,
                LossReason::TooLarge => &mut losses.too_large,
                LossReason::Unreadable => &mut losses.failed,
            } += events;
        }
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(instance: u64, bytes: usize) -> QueuedPacket {
        let stream = StreamId { class: 0, instance };
        QueuedPacket { stream, bytes: vec![0; bytes], events: 1, done: 0, needs: 0, is_message: false, kept: false }
    }

    #[test]
    fn what_was_held_back_is_not_dropped_for_what_comes_by_itself() {
        for drops in [DropPolicy::Oldest, DropPolicy::Newest] {
            let queue = PacketQueue::new(4000, drops).expect("an event fd");
            // The first one is larger than the limit, and nothing else waits.
            assert!(queue.push_blocking(held(0, 5000)));
            queue.push(held(1, 10));
            assert_eq!(queue.lost_of(StreamId { class: 0, instance: 1 })["udp_limit"], 1);
            let first = queue.take().expect("the first one");
            assert_eq!(first.stream.instance, 0);
            queue.finished(&first);
            assert!(queue.push_blocking(held(0, 1000)));
            (0..100).for_each(|_| queue.push(held(1, 100)));
            assert!(queue.waiting() <= 4000);
            assert_eq!(queue.take().map(|held| held.stream.instance), Some(0));
            assert!(queue.lost_of(StreamId { class: 0, instance: 0 }).is_empty());
        }
    }

    #[test]
    fn what_comes_when_no_more_is_taken_is_given_and_lost() {
        let queue = PacketQueue::new(4000, DropPolicy::Oldest).expect("an event fd");
        assert!(queue.push_blocking(held(0, 3900)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| queue.push_blocking(held(0, 3900)));
            queue.close();
            assert!(!waits.join().expect("no panic"));
        });
        assert!(!queue.push_blocking(held(0, 1)));
        let state = queue.lock();
        assert_eq!((state.given, state.losses().total(), state.queued()), (3, 2, 1));
    }
}
