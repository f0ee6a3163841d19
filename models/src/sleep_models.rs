//! Models of the wake-up: a sleeping consumer is woken when a ring gets full.

use crate::sleep_state::SleepState;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// State shared by an owner and the consumer: the number of closed packets, the word, and a flag set when the kernel was called to wake the consumer.
struct Channel {
    closed: AtomicUsize,
    state: SleepState,
    wakes: AtomicUsize,
}

impl Channel {
    fn new() -> Arc<Self> {
        Arc::new(Self { closed: AtomicUsize::new(0), state: SleepState::new(), wakes: AtomicUsize::new(0) })
    }

    /// An owner that closes a packet, so that its ring gets half full.
    fn close(&self) {
        self.closed.fetch_add(1, Ordering::Release);
        if self.state.must_wake() {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The consumer announces its sleep and checks the rings. Returns true if it sleeps.
    fn sleeps(&self) -> bool {
        self.state.announce();
        if self.closed.load(Ordering::Acquire) > 0 {
            self.state.awake();
            return false;
        }
        true
    }
}

/// Needs W1 and W2: without one of them the consumer may sleep although a packet is waiting, and no owner wakes it.
#[test]
fn a_full_ring_finds_the_consumer_awake_or_wakes_it() {
    loom::model(|| {
        let channel = Channel::new();
        let owner = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.close())
        };
        let sleeps = channel.sleeps();
        owner.join().unwrap();
        let wakes = channel.wakes.load(Ordering::Relaxed);
        assert!(!sleeps || wakes == 1, "the consumer sleeps, and was not woken");
    });
}

/// Only one of several owners makes the system call.
#[test]
fn one_owner_wakes_the_consumer() {
    loom::model(|| {
        let channel = Channel::new();
        assert!(channel.sleeps());
        let other = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.close())
        };
        channel.close();
        other.join().unwrap();
        assert_eq!(channel.wakes.load(Ordering::Relaxed), 1);
    });
}
