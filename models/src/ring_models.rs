//! Models of a ring's way from thread to thread: one has it at a time, and finds all that was done to it before.

use crate::ownership::Ownership;
use crate::pool::Pool;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A ring, as far as its way is concerned: whose it is, and what is its owner's or, once that has ended, the drain's.
#[derive(Debug)]
pub(crate) struct Ring {
    ownership: Ownership,
    /// How many records are in it, and how often it was made ready again. Loom reports any two accesses that are not ordered.
    contents: UnsafeCell<(usize, usize)>,
}

// SAFETY: what the models are to show.
unsafe impl Sync for Ring {}

/// What the threads of a channel share.
#[derive(Debug)]
struct Channel {
    ring: Arc<Ring>,
    pool: Pool,
}

// SAFETY: the pool's pointers are to the ring that stands beside it.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    /// With one ring, in the pool.
    fn new() -> Arc<Self> {
        let ring = Arc::new(Ring { ownership: Ownership::spare(), contents: UnsafeCell::new((0, 0)) });
        let pool = Pool::new(1);
        assert!(pool.put(&raw const *ring));
        Arc::new(Self { ring, pool })
    }

    /// A thread that fires one event and ends; whether it was recorded.
    fn run_thread(&self) -> bool {
        let Some(taken) = self.pool.take() else { return false };
        // SAFETY: pointers in the pool are to the channel's ring.
        let ring = unsafe { &*taken };
        ring.ownership.own();
        // SAFETY: exclusive, as loom checks.
        ring.contents.with_mut(|contents| unsafe { (*contents).0 += 1 });
        ring.ownership.end();
        true
    }

    /// What the drain does in a round.
    fn maintain(&self) {
        // The state is looked at in any case: loom tries more orders of what every run does.
        if self.ring.ownership.has_ended() && self.pool.missing() > 0 {
            // SAFETY: exclusive, as loom checks.
            self.ring.contents.with_mut(|contents| unsafe { (*contents).1 += 1 });
            self.ring.ownership.recycle();
            assert!(self.pool.put(&raw const *self.ring), "nobody else puts rings");
        }
    }
}

/// Needs L1 and L2: without one of them a thread, or the drain, has the ring while what another did to it is not there yet.
#[test]
fn a_ring_goes_from_one_thread_to_the_next() {
    loom::model(|| {
        let channel = Channel::new();
        let threads = [(); 2].map(|()| {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.run_thread())
        });
        channel.maintain();
        channel.maintain();
        let recorded = threads.map(|thread| usize::from(thread.join().unwrap())).iter().sum();
        // SAFETY: the other threads have ended.
        let (records, recycled) = channel.ring.contents.with(|contents| unsafe { *contents });
        assert_eq!(records, recorded, "no record is lost");
        assert!(recorded == 1 || recycled > 0, "the second thread got it from the drain");
    });
}

/// A ring is taken once, however many threads begin at a time, and is not taken from under one that is putting it.
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
        assert_eq!(channel.pool.missing(), 1);
    });
}
