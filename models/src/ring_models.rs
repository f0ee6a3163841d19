//! Models of the transfer of a ring between threads: it has one owner at a time, which sees all earlier accesses.

use crate::ownership::Ownership;
use crate::pool::Pool;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A ring: its ownership, and the contents, which belong to the owner or, once its ownership has ended, to the consumer.
#[derive(Debug)]
pub(crate) struct Ring {
    ownership: Ownership,
    /// The number of records, and how often it was recycled. Loom reports accesses that are not ordered.
    contents: UnsafeCell<(usize, usize)>,
}

// SAFETY: the models check it: loom reports a data race.
unsafe impl Sync for Ring {}

/// The part of a channel that its threads share.
#[derive(Debug)]
struct Channel {
    ring: Arc<Ring>,
    pool: Pool,
}

// SAFETY: the pool's pointers are to `ring`, which lives as long.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    /// A channel with one ring, which is in the pool.
    fn new() -> Arc<Self> {
        let ring = Arc::new(Ring { ownership: Ownership::spare(), contents: UnsafeCell::new((0, 0)) });
        let pool = Pool::new(1);
        assert!(pool.put(&raw const *ring));
        Arc::new(Self { ring, pool })
    }

    /// A thread that fires one event, and then ends, or hands the ring on. Returns whether the event was recorded.
    fn run_thread(&self, hands_on: bool) -> bool {
        let Some(taken) = self.pool.take() else { return false };
        // SAFETY: pointers in the pool are to the channel's ring, which lives as long.
        let ring = unsafe { &*taken };
        ring.ownership.own();
        // SAFETY: exclusive, as loom checks.
        ring.contents.with_mut(|contents| unsafe { (*contents).0 += 1 });
        if hands_on {
            ring.ownership.recycle();
            assert!(self.pool.put(taken), "there is room for the ring");
        } else {
            ring.ownership.end();
        }
        true
    }

    /// One round of the consumer.
    fn maintain(&self) {
        // The state is loaded first and always, so that loom explores more orders.
        if self.ring.ownership.has_ended() && self.pool.count() == 0 {
            // SAFETY: exclusive, as loom checks.
            self.ring.contents.with_mut(|contents| unsafe { (*contents).1 += 1 });
            self.ring.ownership.recycle();
            assert!(self.pool.put(&raw const *self.ring), "nothing else puts the ring of a thread that has ended");
        }
    }
}

/// Needs L1 and L2: without one of them, a thread or the consumer accesses the ring without seeing earlier accesses.
#[test]
fn a_ring_goes_from_one_thread_to_the_next() {
    loom::model(|| {
        let channel = Channel::new();
        let threads = [(); 2].map(|()| {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.run_thread(false))
        });
        channel.maintain();
        channel.maintain();
        let recorded = threads.map(|thread| usize::from(thread.join().unwrap())).iter().sum();
        // SAFETY: the other threads have ended.
        let (records, recycled) = channel.ring.contents.with(|contents| unsafe { *contents });
        assert_eq!(records, recorded, "no record is lost");
        assert!(recorded == 1 || recycled > 0, "the second thread got it from the consumer");
    });
}

/// Needs L2: the next thread gets the ring from the last one, and the consumer leaves it alone.
#[test]
fn a_ring_is_handed_on() {
    loom::model(|| {
        let channel = Channel::new();
        let other = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.run_thread(true))
        };
        let second = channel.run_thread(false);
        channel.maintain();
        let first = other.join().unwrap();
        // SAFETY: the other threads have ended.
        let (records, recycled) = channel.ring.contents.with(|contents| unsafe { *contents });
        assert_eq!(records, usize::from(first) + usize::from(second), "no record is lost");
        assert!(recycled <= usize::from(second), "only the ring of the thread that has ended was recycled");
        let is_spare = channel.pool.count() == 1;
        assert_eq!(is_spare, !second || recycled == 1, "it is with the thread that has ended, or in the pool");
    });
}

/// Only one of two concurrent threads takes the ring.
#[test]
fn a_ring_is_taken_once() {
    loom::model(|| {
        let channel = Channel::new();
        let other = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.pool.take().is_some())
        };
        let this = channel.pool.take().is_some();
        assert!(this != other.join().unwrap(), "one of the two has it");
        assert_eq!(channel.pool.count(), 0);
    });
}

/// The count of a pool is never below its number of rings, and exact when no thread puts or takes a ring.
#[test]
fn the_count_of_a_pool_follows_its_entries() {
    loom::model(|| {
        let channel = Channel::new();
        let other = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || {
                let taken = channel.pool.take().is_some();
                assert!(channel.pool.count() <= 2, "it does not wrap");
                usize::from(taken)
            })
        };
        let taken = usize::from(channel.pool.take().is_some());
        let put = usize::from(channel.pool.put(&raw const *channel.ring));
        assert!(channel.pool.count() <= 2, "it does not wrap");
        let others = other.join().unwrap();
        assert_eq!(channel.pool.count() + taken + others, 1 + put);
    });
}
