//! The queue of packets that wait for a client, of bounded size, and the metadata of the trace.
//!
//! The step before are the threads that push packets, which never wait for the network; the step after is the server's thread.

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
    /// How many events it holds.
    pub(super) events: u64,
    /// How many of them were sent or lost already.
    pub(super) done: u64,
    /// The length of the metadata that is needed to decode it.
    pub(super) needs: u32,
    /// Whether its events are ingested messages, whose bytes are their text.
    pub(super) is_message: bool,
    /// Whether the pusher has waited for space: such a packet is never dropped.
    pub(super) kept: bool,
}

impl QueuedPacket {
    /// Its memory, in bytes.
    fn cost(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    pub(super) fn left(&self) -> u64 {
        self.events.saturating_sub(self.done)
    }
}

/// The layout of the records, by the metadata.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) metadata: Metadata,
    /// `None` for the packets of other tracers, which cannot be split.
    pub(super) sizes: Option<RecordSizes>,
}

/// Whether a client is being served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Serving {
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
    /// The trace has ended: nothing more is pushed.
    pub(super) ended: bool,
    /// No packet of a pusher that waits is taken any more.
    pub(super) closed: bool,
    /// The thread shall end at once.
    pub(super) quit: bool,
    pub(super) serving: Serving,
    /// How many events were pushed.
    pub(super) given: u64,
    pub(super) ingested: Ingested,
    pub(super) lost: LostEvents,
}

/// What was ingested so far.
#[derive(Debug, Default)]
pub(super) struct Ingested {
    pub(super) messages: u64,
    /// Messages that were too long.
    pub(super) overlong: u64,
    /// The file that they come from was read to its end.
    pub(super) ended: bool,
}

/// The queue, which the pushing threads and the server's thread share.
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
            // A packet without events is small, and counts the losses of its stream: it is dropped last.
            let full = |held: &QueuedPacket| !held.kept && held.left() > 0;
            let place = match self.drops {
                DropPolicy::Oldest => state.queue.iter().position(full),
                DropPolicy::Newest => state.queue.iter().rposition(full),
            };
            let place = place.or_else(|| state.queue.iter().position(|held| !held.kept));
            let Some(dropped) = place.and_then(|place| state.queue.remove(place)) else { break };
            state.bytes = state.bytes.saturating_sub(dropped.cost());
            let reason = if state.serving == Serving::Limited { LossReason::Rate } else { LossReason::Limit };
            state.lost.add(dropped.stream, reason, dropped.left());
        }
    }

    fn insert(state: &mut State, held: QueuedPacket) {
        state.given += held.events;
        state.bytes += held.cost();
        state.queue.push_back(held);
    }

    /// Waits until there is space for a packet, and adds it; it is never dropped for later ones. `false` if no more packets are taken: the
    /// packet is lost.
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

    /// From now on, packets whose pushers wait are lost.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
    }

    /// Takes the next packet. Its memory is counted until it is [`PacketQueue::finished`] or put back.
    pub(super) fn take(&self) -> Option<QueuedPacket> {
        self.lock().queue.pop_front()
    }

    /// Releases a packet that was taken and has been sent or lost.
    pub(super) fn finished(&self, held: &QueuedPacket) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(held.cost());
        self.room.notify_all();
    }

    /// Puts packets that were taken back to the front, in this order.
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

    /// Whether a packet may be added that is not dropped for others.
    pub(super) fn has_space(&self) -> bool {
        self.lock().bytes < self.limit
    }

    /// The trace has ended. `account` is called once nothing more can be added.
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

    /// What was lost of a stream, by reason.
    pub(super) fn lost_of(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.lock().lost.of(stream)
    }
}

impl State {
    const fn takes_more(&self) -> bool {
        !self.quit && !self.ended && !self.closed
    }

    /// All losses, in the categories of the protocol. Messages that were too long are in no stream.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.lost.by_category();
        losses.too_large += self.ingested.overlong;
        losses
    }

    /// Packets in the queue.
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
