//! What waits for a client: packets, within a limit; and what the server was told about the trace.
//!
//! The step before are the threads that bring packets, which never wait for the network; the step after is the server's thread.

use super::options::DropPolicy;
use super::outside::Messages;
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
pub(super) struct Held {
    pub(super) stream: StreamId,
    pub(super) bytes: Vec<u8>,
    /// How many events it holds.
    pub(super) events: u64,
    /// How many of these are behind us, sent or lost.
    pub(super) done: u64,
    /// How much of the metadata it takes to decode it.
    pub(super) needs: u32,
    /// Whether its events are from outside: their bytes are their text.
    pub(super) outside: bool,
    /// Whether it was held back until there was room: it is not dropped.
    pub(super) kept: bool,
}

impl Held {
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
pub(super) enum Reason {
    /// More waited than may.
    Limit,
    /// The server may not send faster.
    Rate,
    TooLarge,
    Unreadable,
    /// Nobody came for them.
    Unread,
}

impl Reason {
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
    Freely,
    /// No faster than a rate.
    Paced,
}

#[derive(Debug, Default)]
pub(super) struct Inside {
    queue: VecDeque<Held>,
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
    lost: BTreeMap<(StreamId, Reason), u64>,
}

/// What the threads that bring packets and the server's thread share.
#[derive(Debug)]
pub(super) struct Store {
    inside: Mutex<Inside>,
    room: Condvar,
    limit: usize,
    drops: DropPolicy,
    wake: OwnedFd,
}

impl Store {
    pub(super) fn new(limit: usize, drops: DropPolicy) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inside: Mutex::default(), room: Condvar::new(), limit, drops, wake })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn push(&self, held: Held) {
        let mut inside = self.lock();
        self.add(&mut inside, held);
        drop(inside);
        self.wake();
    }

    fn add(&self, inside: &mut Inside, held: Held) {
        Self::insert(inside, held);
        while inside.bytes > self.limit {
            // A packet without events is small, and says what the stream lost: it goes last.
            let full = |held: &Held| !held.kept && held.left() > 0;
            let place = match self.drops {
                DropPolicy::Oldest => inside.queue.iter().position(full),
                DropPolicy::Newest => inside.queue.iter().rposition(full),
            };
            let place = place.or_else(|| inside.queue.iter().position(|held| !held.kept));
            let Some(dropped) = place.and_then(|place| inside.queue.remove(place)) else { break };
            inside.bytes = inside.bytes.saturating_sub(dropped.cost());
            let reason = if inside.serving == Serving::Paced { Reason::Rate } else { Reason::Limit };
            inside.lose(dropped.stream, reason, dropped.left());
        }
    }

    fn insert(inside: &mut Inside, held: Held) {
        inside.given += held.events;
        inside.bytes += held.cost();
        inside.queue.push_back(held);
    }

    /// Adds a packet when there is room for it, and keeps it whatever comes later. `false` if the server takes no more: it is lost.
    pub(super) fn push_when_there_is_room(&self, held: Held) -> bool {
        let mut inside = self.lock();
        while inside.takes_more() && inside.bytes > 0 && inside.bytes + held.cost() > self.limit {
            inside = self.room.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        let goes_on = inside.takes_more();
        if goes_on {
            Self::insert(&mut inside, Held { kept: true, ..held });
        } else {
            inside.given += held.events;
            inside.lose(held.stream, Reason::Unread, held.left());
        }
        drop(inside);
        self.wake();
        goes_on
    }

    /// What is held back is lost from here on, for nobody came for it in time.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.room.notify_all();
    }

    /// Takes the next packet. It counts as waiting until it is [`Store::finished`] or put back.
    pub(super) fn take(&self) -> Option<Held> {
        self.lock().queue.pop_front()
    }

    /// A packet that was taken, and has been sent or lost.
    pub(super) fn finished(&self, held: &Held) {
        let mut inside = self.lock();
        inside.bytes = inside.bytes.saturating_sub(held.cost());
        self.room.notify_all();
    }

    /// Packets that were taken, and wait again, in this order, before all others.
    pub(super) fn put_back(&self, packets: impl DoubleEndedIterator<Item = Held>) {
        let mut inside = self.lock();
        for held in packets.rev() {
            inside.queue.push_front(held);
        }
    }

    pub(super) fn lose(&self, stream: StreamId, reason: Reason, events: u64) {
        self.lock().lose(stream, reason, events);
    }

    /// What still waits is lost, for nobody came for it in time.
    pub(super) fn abandon(&self) {
        let mut inside = self.lock();
        for held in std::mem::take(&mut inside.queue) {
            inside.bytes = inside.bytes.saturating_sub(held.cost());
            inside.lose(held.stream, Reason::Unread, held.left());
        }
    }

    /// Adds messages from outside, unless the trace has ended: then they came too late.
    pub(super) fn push_messages(&self, messages: Messages) {
        let mut inside = self.lock();
        if inside.ended {
            return;
        }
        inside.messages += messages.events;
        inside.overlong = messages.overlong;
        let Messages { stream, packet: bytes, events, .. } = messages;
        let needs = inside.metadata.len() as u32;
        self.add(&mut inside, Held { stream, bytes, events, done: 0, needs, outside: true, kept: false });
    }

    /// Nothing will be added any more. `account` is asked for when that is so.
    pub(super) fn end(&self, account: impl FnOnce(&Inside) -> Option<Vec<u8>>) {
        let mut inside = self.lock();
        inside.account = account(&inside);
        inside.ended = true;
        drop(inside);
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

impl Inside {
    const fn takes_more(&self) -> bool {
        !self.quit && !self.ended && !self.closed
    }

    /// Packets that wait.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn lose(&mut self, stream: StreamId, reason: Reason, events: u64) {
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
                Reason::Limit | Reason::Unread => &mut losses.limit,
                Reason::Rate => &mut losses.rate,
                Reason::TooLarge => &mut losses.too_large,
                Reason::Unreadable => &mut losses.failed,
            } += events;
        }
        losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(instance: u64, bytes: usize) -> Held {
        let stream = StreamId { class: 0, instance };
        Held { stream, bytes: vec![0; bytes], events: 1, done: 0, needs: 0, outside: false, kept: false }
    }

    #[test]
    fn what_was_held_back_is_not_dropped_for_what_comes_by_itself() {
        for drops in [DropPolicy::Oldest, DropPolicy::Newest] {
            let store = Store::new(4000, drops).expect("an event fd");
            // The first one is larger than the limit, and nothing else waits.
            assert!(store.push_when_there_is_room(held(0, 5000)));
            store.push(held(1, 10));
            assert_eq!(store.lost_of(StreamId { class: 0, instance: 1 })["udp_limit"], 1);
            let first = store.take().expect("the first one");
            assert_eq!(first.stream.instance, 0);
            store.finished(&first);
            assert!(store.push_when_there_is_room(held(0, 1000)));
            (0..100).for_each(|_| store.push(held(1, 100)));
            assert!(store.waiting() <= 4000);
            assert_eq!(store.take().map(|held| held.stream.instance), Some(0));
            assert!(store.lost_of(StreamId { class: 0, instance: 0 }).is_empty());
        }
    }

    #[test]
    fn what_comes_when_no_more_is_taken_is_given_and_lost() {
        let store = Store::new(4000, DropPolicy::Oldest).expect("an event fd");
        assert!(store.push_when_there_is_room(held(0, 3900)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| store.push_when_there_is_room(held(0, 3900)));
            store.close();
            assert!(!waits.join().expect("no panic"));
        });
        assert!(!store.push_when_there_is_room(held(0, 1)));
        let inside = store.lock();
        assert_eq!((inside.given, inside.losses().total(), inside.queued()), (3, 2, 1));
    }
}
