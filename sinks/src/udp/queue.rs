//! The bounded queue of packets that wait for a client, and the trace's metadata.
//!
//! The producers are the threads that push packets, which never wait for the network; the consumer is the server's thread.

use super::ingest::Messages;
use super::losses::{LossReason, LostEvents};
use super::options::DropPolicy;
use fileguard::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tracepoint_reader::Metadata;
use tracepoint_reader::internal::RecordSizes;
use tracepoint_ring::channel::StreamId;
use tracepoint_wire::udp::Losses;

/// A packet that is queued, or being sent.
#[derive(Debug)]
pub(super) struct QueuedPacket {
    pub(super) stream: StreamId,
    pub(super) bytes: Vec<u8>,
    /// Number of events in it.
    pub(super) events: u64,
    /// Number of events that were already sent or lost.
    pub(super) done: u64,
    /// Length of the metadata that is needed to decode it.
    pub(super) needs: u32,
    /// True if its events are ingested messages, whose bytes are their text.
    pub(super) is_message: bool,
    /// True if the producer has waited for space: such a packet is never dropped.
    pub(super) kept: bool,
}

impl QueuedPacket {
    /// Returns its memory in bytes.
    fn cost(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    pub(super) fn left(&self) -> u64 {
        self.events.saturating_sub(self.done)
    }
}

/// The layout of the records, from the metadata.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) metadata: Metadata,
    /// `None` for the packets of other tracers, which cannot be split.
    pub(super) sizes: Option<RecordSizes>,
}

/// State of the service to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ServiceState {
    #[default]
    NoClient,
    Unlimited,
    /// With a rate limit.
    Limited,
}

#[derive(Debug, Default)]
pub(super) struct State {
    queue: VecDeque<QueuedPacket>,
    /// Bytes in the queue.
    pub(super) bytes: usize,
    /// The metadata so far, and its layout.
    pub(super) metadata: Vec<u8>,
    pub(super) layout: Option<Arc<Layout>>,
    /// The account; `None` before the trace has ended, or if it has none.
    pub(super) account: Option<Vec<u8>>,
    /// Set once the trace has ended: nothing more is pushed.
    pub(super) ended: bool,
    /// Set once packets of waiting producers are no longer accepted.
    pub(super) closed: bool,
    /// Set to make the thread end at once.
    pub(super) quit: bool,
    pub(super) serving: ServiceState,
    /// Number of events pushed.
    pub(super) given: u64,
    pub(super) ingested: IngestedMessages,
    pub(super) lost: LostEvents,
}

/// Counts of ingested messages.
#[derive(Debug, Default)]
pub(super) struct IngestedMessages {
    pub(super) messages: u64,
    /// Messages that were too long.
    pub(super) overlong: u64,
    /// Set once the file that they come from was read to its end.
    pub(super) ended: bool,
}

/// The queue, shared by the producers and the server's thread.
#[derive(Debug)]
pub(super) struct PacketQueue {
    state: Mutex<State>,
    room: Condvar,
    limit: usize,
    drops: DropPolicy,
    wake: Waker,
}

impl PacketQueue {
    pub(super) fn new(limit: usize, drops: DropPolicy) -> io::Result<Self> {
        let wake = Waker::new()?;
        Ok(Self { state: Mutex::default(), room: Condvar::new(), limit, drops, wake })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread when there is something to do.
    pub(super) const fn waker(&self) -> &Waker {
        &self.wake
    }

    pub(super) fn wake(&self) {
        self.wake.wake();
    }

    /// Adds a packet, and drops packets beyond the limit. Never waits for a client.
    pub(super) fn push(&self, held: QueuedPacket) {
        let mut state = self.lock();
        self.add(&mut state, held);
        drop(state);
        self.wake();
    }

    fn add(&self, state: &mut State, held: QueuedPacket) {
        Self::insert(state, held);
        while state.bytes > self.limit {
            // A packet without events is small, and has the loss counts of its stream, so it is dropped last.
            let full = |held: &QueuedPacket| !held.kept && held.left() > 0;
            let place = match self.drops {
                DropPolicy::Oldest => state.queue.iter().position(full),
                DropPolicy::Newest => state.queue.iter().rposition(full),
            };
            let place = place.or_else(|| state.queue.iter().position(|held| !held.kept));
            let Some(dropped) = place.and_then(|place| state.queue.remove(place)) else { break };
            state.bytes = state.bytes.saturating_sub(dropped.cost());
            let reason = if state.serving == ServiceState::Limited { LossReason::Rate } else { LossReason::Limit };
            state.lost.add(dropped.stream, reason, dropped.left());
        }
    }

    fn insert(state: &mut State, held: QueuedPacket) {
        state.given += held.events;
        state.bytes += held.cost();
        state.queue.push_back(held);
    }

    /// Waits until there is space for a packet, and adds it; it is never dropped in favour of later ones. Returns `false` if no more packets are
    /// accepted: the packet is then lost.
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
            state.lost.add(held.stream, LossReason::Unread, held.left());
        }
        drop(state);
        self.wake();
        goes_on
    }

    /// Rejects packets of waiting producers from now on; they are lost.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
    }

    /// Takes the next packet. Its memory is counted until it is [`PacketQueue::finished`] or put back.
    pub(super) fn take(&self) -> Option<QueuedPacket> {
        self.lock().queue.pop_front()
    }

    /// Releases a dequeued packet that has been sent or lost.
    pub(super) fn finished(&self, held: &QueuedPacket) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(held.cost());
        self.room.notify_all();
    }

    /// Returns dequeued packets to the front, in this order.
    pub(super) fn put_back(&self, packets: impl DoubleEndedIterator<Item = QueuedPacket>) {
        let mut state = self.lock();
        for held in packets.rev() {
            state.queue.push_front(held);
        }
    }

    pub(super) fn lose(&self, stream: StreamId, reason: LossReason, events: u64) {
        self.lock().lost.add(stream, reason, events);
    }

    /// Drops all queued packets, because no client requested them in time.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        for held in std::mem::take(&mut state.queue) {
            state.bytes = state.bytes.saturating_sub(held.cost());
            state.lost.add(held.stream, LossReason::Unread, held.left());
        }
    }

    /// Adds ingested messages, unless the trace has ended.
    pub(super) fn push_messages(&self, messages: Messages) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.ingested.messages += messages.events;
        state.ingested.overlong = messages.overlong;
        let Messages { stream, packet: bytes, events, kept, .. } = messages;
        let needs = state.metadata.len() as u32;
        self.add(&mut state, QueuedPacket { stream, bytes, events, done: 0, needs, is_message: true, kept });
    }

    /// Returns whether a packet that is never dropped may be added.
    pub(super) fn has_space(&self) -> bool {
        self.lock().bytes < self.limit
    }

    /// Ends the trace. `account` is called once nothing more can be added.
    pub(super) fn end(&self, account: impl FnOnce(&State) -> Option<Vec<u8>>) {
        let mut state = self.lock();
        state.account = account(&state);
        state.ended = true;
        drop(state);
        self.room.notify_all();
        self.wake();
    }

    /// Ends the server at once.
    pub(super) fn quit(&self) {
        self.lock().quit = true;
        self.abandon();
        self.room.notify_all();
        self.wake();
    }

    /// Returns the losses of a stream, by reason.
    pub(super) fn lost_of(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.lock().lost.of(stream)
    }
}

impl State {
    const fn takes_more(&self) -> bool {
        !self.quit && !self.ended && !self.closed
    }

    /// Returns all losses, in the categories of the protocol. Messages that were too long belong to no stream.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.lost.by_category();
        losses.too_large += self.ingested.overlong;
        losses
    }

    /// Returns the number of packets in the queue.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
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
    fn packets_whose_pusher_waited_are_not_dropped() {
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
            assert!(queue.lock().bytes <= 4000);
            assert_eq!(queue.take().map(|held| held.stream.instance), Some(0));
            assert!(queue.lost_of(StreamId { class: 0, instance: 0 }).is_empty());
        }
    }

    #[test]
    fn packets_after_the_close_are_counted_as_lost() {
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
