//! Wakes the agent's thread: after a registration, or to stop it.

use fileguard::Waker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The reason of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakeup {
    Rung,
    Tick,
    Stopped,
    /// The program has closed a descriptor of the agent.
    Closed,
}

/// Requests the thread to stop.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) waker: Arc<Waker>,
    requested: Arc<AtomicBool>,
}

impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { waker: Arc::new(Waker::new()?), requested: Arc::default() })
    }

    pub(super) fn request(&self) {
        // Relaxed: publishes nothing else. The thread checks this after each read and each poll of the pipe, whose lock orders this store
        // before them.
        self.requested.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
