//! The bounded queue between the drain and the sender's thread, with the trace's metadata and the counts of both.
//!
//! The producer is the drain. It waits for the network only if more than twice the limit arrives in a single round, or at the end of the recording.
//! Then it waits for room as long as sending the rest may take; packets that find no room by then are lost and counted. The consumer is the worker.

use super::delivery::{Count, Deliveries};
use super::rate::Rate;
use crate::account::Account;
use crate::sink::StreamInfo;
use crate::stream_stats::{LostPackets, StreamStats};
use fileguard::Waker;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracepoint_ring::channel::{PacketHeader, StreamId};

#[derive(Debug)]
pub(super) struct QueuedPacket {
    pub(super) stream: StreamInfo,
    pub(super) header: PacketHeader,
    pub(super) bytes: Vec<u8>,
    /// Number of records of the stream before the packet, and up to its end.
    pub(super) events_before: u64,
    pub(super) events_after: u64,
    /// When it was queued, in ns of `CLOCK_MONOTONIC`.
    pub(super) queued: u64,
}

impl QueuedPacket {
    pub(super) const fn events(&self) -> u64 {
        self.events_after - self.events_before
    }

    /// Returns the bytes without padding.
    pub(super) fn content(&self) -> &[u8] {
        let size = usize::try_from(self.header.content_bits / 8).unwrap_or(usize::MAX);
        &self.bytes[..size.min(self.bytes.len())]
    }

    /// Returns its stream and number.
    const fn key(&self) -> (StreamId, u64) {
        (self.stream.id, self.header.sequence)
    }

    /// Returns its memory in bytes.
    fn cost(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }
}

/// An item for the worker.
#[derive(Debug)]
pub(super) enum Item {
    Packet(QueuedPacket),
    /// A synchronisation point: all events from before this time are in packets queued before it.
    Sync(u64),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) items: VecDeque<Item>,
    /// Bytes of packets that are queued, being sent, or kept until they are acknowledged.
    pub(super) bytes: usize,
    /// The metadata so far.
    pub(super) metadata: String,
    /// Set once the recording has ended: nothing more is added.
    pub(super) ended: bool,
    /// Set to make the worker end at once.
    pub(super) quit: bool,
    /// Set once the worker has ended.
    pub(super) over: bool,
    /// The error of the first connection attempts, if no more are made.
    pub(super) refused: Option<String>,
    /// The outcome of all packets.
    pub(super) deliveries: Deliveries,
    /// Maximum packet size of each stream class.
    pub(super) packet_sizes: HashMap<u32, usize>,
    /// The account, once the recording has ended, and the losses that it contains.
    pub(super) account: Option<Account>,
    pub(super) reported: Deliveries,
    /// Number of events lost by the time that sending ended.
    lost_in_time: Option<u64>,
    pub(super) stats: StreamStats,
    pub(super) rate: Rate,
    /// End times of the packets that wait to be sent or acknowledged; `None` if the trace does not use this host's clock.
    pub(super) waiting: Option<HashMap<(StreamId, u64), u64>>,
}

/// The queue, shared by the drain and the worker.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limit: usize,
    /// How long the drain waits for room without progress.
    patience: Duration,
    wake: Waker,
}

impl Queue {
    pub(super) fn new(limit: usize, patience: Duration) -> io::Result<Self> {
        let wake = Waker::new()?;
        Ok(Self { state: Mutex::default(), changed: Condvar::new(), limit, patience, wake })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the waker of the worker.
    pub(super) const fn waker(&self) -> &Waker {
        &self.wake
    }

    fn wake(&self) {
        self.wake.wake();
    }

    /// Returns whether the drain should leave packets in the rings.
    pub(super) fn is_full(&self) -> bool {
        self.lock().bytes > self.limit
    }

    /// Changes the state and notifies the other side.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.wake();
        result
    }

    /// Adds a packet. Returns `false`, and counts the packet as lost, if no room became free in time or the worker has ended.
    pub(super) fn push(&self, packet: QueuedPacket) -> bool {
        let most = self.limit.saturating_mul(2);
        let mut state = self.lock();
        state.deliveries.give(packet.stream.id, packet.events());
        let mut deadline = Instant::now() + self.patience;
        while !state.over && state.bytes > 0 && state.bytes + packet.cost() > most {
            let before = state.bytes;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            if state.bytes < before {
                deadline = Instant::now() + self.patience;
            }
        }
        let has_room = !state.over && (state.bytes == 0 || state.bytes + packet.cost() <= most);
        if has_room {
            state.bytes += packet.cost();
            if let Some(waiting) = &mut state.waiting {
                waiting.insert(packet.key(), packet.header.end);
            }
            state.items.push_back(Item::Packet(packet));
        } else {
            state.lose(&packet, LostPackets::Network);
        }
        drop(state);
        self.wake();
        has_room
    }

    /// Waits until `is_done` or the timeout. Returns the last state.
    pub(super) fn wait_until(&self, time: Duration, is_done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.lock();
        self.changed.wait_timeout_while(state, time, |state| !is_done(state)).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Releases the memory of a dequeued packet.
    pub(super) fn finished(&self, packet: &QueuedPacket) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(packet.cost());
        state.forget(packet);
        self.changed.notify_all();
    }

    /// Counts packets of a stream as stored by the peer.
    pub(super) fn stored(&self, stream: StreamId, count: Count) {
        self.lock().deliveries.store(stream, count);
    }

    /// Counts a dequeued packet as sent.
    pub(super) fn count_sent(&self, packet: &QueuedPacket) {
        let mut state = self.lock();
        state.stats.packets += 1;
        state.stats.bytes += packet.bytes.len() as u64;
        state.rate.add(packet.bytes.len() as u64, Instant::now());
    }

    /// Counts a dequeued packet as lost, and releases its memory.
    pub(super) fn lost(&self, packet: &QueuedPacket, reason: LostPackets) {
        self.lock().lose(packet, reason);
        self.finished(packet);
    }
}

impl State {
    fn lose(&mut self, packet: &QueuedPacket, reason: LostPackets) {
        self.deliveries.lose(packet.stream.id, Count::packet(packet.events()), reason);
    }

    /// Adds a packet of the worker as the next item.
    pub(super) fn put_first(&mut self, packet: QueuedPacket) {
        self.bytes += packet.cost();
        self.items.push_front(Item::Packet(packet));
    }

    /// Returns the account with all losses.
    pub(super) fn whole_account(&self) -> Option<Account> {
        let mut account = self.account.clone()?;
        self.deliveries.add_lost(&mut account, &self.reported);
        Some(account)
    }

    /// Ends sending because the time is over.
    pub(super) fn give_up(&mut self) {
        let lost = self.deliveries.lost().values().sum();
        self.lost_in_time.get_or_insert(lost);
        self.abandon();
    }

    /// Counts unacknowledged packets as lost, when nothing more reaches the peer.
    pub(super) fn end(&mut self) {
        self.give_up();
        self.deliveries.lose_underway();
    }

    /// Returns the number of events lost because they were not acknowledged in time.
    pub(super) fn lost_at_end(&self) -> u64 {
        let lost: u64 = self.deliveries.lost().values().sum();
        self.lost_in_time.map_or(0, |in_time| lost.saturating_sub(in_time))
    }

    /// Removes a packet from the waiting ones.
    fn forget(&mut self, packet: &QueuedPacket) {
        if let Some(waiting) = &mut self.waiting {
            waiting.remove(&packet.key());
        }
    }

    /// Counts all queued packets as lost.
    pub(super) fn abandon(&mut self) {
        for item in std::mem::take(&mut self.items) {
            if let Item::Packet(packet) = item {
                self.lose(&packet, LostPackets::Network);
                self.bytes = self.bytes.saturating_sub(packet.cost());
                self.forget(&packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: usize) -> QueuedPacket {
        let stream = StreamInfo { id: StreamId { class: 0, instance: 1 }, channel: "c".to_owned() };
        let header = PacketHeader::default();
        QueuedPacket { stream, header, bytes: vec![0; bytes], events_before: 3, events_after: 5, queued: 0 }
    }

    #[test]
    fn what_exceeds_twice_the_limit_is_lost() {
        let queue = Queue::new(1000, Duration::from_millis(1)).expect("a pipe");
        assert!(queue.push(packet(5000)), "a large one, alone");
        assert!(queue.is_full());
        assert!(!queue.push(packet(10)));
        assert_eq!(queue.lock().deliveries.lost()["network"], 2);
        let Some(Item::Packet(first)) = queue.lock().items.pop_front() else { panic!("a packet") };
        queue.finished(&first);
        assert!(!queue.is_full());
        assert!(queue.push(packet(10)));
        queue.change(State::abandon);
        let state = queue.lock();
        assert_eq!((state.bytes, state.items.len()), (0, 0));
        assert_eq!(state.deliveries.lost()["network"], 4);
    }

    #[test]
    fn the_drain_waits_for_room_while_packets_leave() {
        let queue = Queue::new(1000, Duration::from_secs(60)).expect("a pipe");
        assert!(queue.push(packet(1500)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| queue.push(packet(1500)));
            let Some(Item::Packet(first)) = queue.lock().items.pop_front() else { panic!("a packet") };
            queue.finished(&first);
            assert!(waits.join().expect("no panic"));
        });
        let queue = Queue::new(1000, Duration::from_secs(60)).expect("a pipe");
        assert!(queue.push(packet(1500)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| queue.push(packet(1500)));
            queue.change(|state| state.over = true);
            assert!(!waits.join().expect("no panic"), "nobody will take it");
        });
    }
}
