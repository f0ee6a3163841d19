//! The thread that creates rings for new threads, and for threads whose own are full, while the drain sleeps or a slow sink blocks it.
//!
//! ```text
//!   asleep ──a thread takes one of the last spare rings──▶ supplies ──the drain is in a round──▶ supplies every 2 ms until that ends
//!      ▲                                                     │                                                  │
//!      └─────────────────────────────────────────────────────┴──────────────────────────────────────────────────┘
//! ```
//!
//! Therefore it does not run while there are enough rings, however many events occur. The threads of a channel with
//! [`no_wake`](tracepoint_core::channel::Channel::no_wake) do not wake it: the drain does so, at the beginning of each round that has
//! packets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tracepoint_core::channel::WakeWord;
use tracepoint_sinks::{RingSupplier, own_thread};

/// Thread name, as shown by `top -H`.
const NAME: &str = "tracepoint-supply";
/// The interval between two checks in a round of the drain: rings of 1 MiB fill up in 8 ms at 5 million events a second, and two are spare.
const INTERVAL: Duration = Duration::from_millis(2);

/// The thread. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct SupplyThread {
    shared: Arc<SupplyState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SupplyState {
    supplier: RingSupplier,
    word: Arc<WakeWord>,
    /// True while the drain is in a round. Relaxed: one check more or less is harmless.
    is_draining: AtomicBool,
    /// Relaxed: stored before the word is woken, and loaded after the announcement (W1, W2).
    is_ended: AtomicBool,
}

impl SupplyThread {
    pub(super) fn start(supplier: RingSupplier) -> io::Result<Self> {
        let word = supplier.wake_word().unwrap_or_default();
        let [is_draining, is_ended] = [const { AtomicBool::new(false) }; 2];
        let shared = Arc::new(SupplyState { supplier, word, is_draining, is_ended });
        let own = Arc::clone(&shared);
        let thread = own_thread::spawn(NAME, move || own.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Runs a round of the drain that has packets. During the round the thread, once woken, keeps supplying rings. If events never wake the
    /// thread, this function wakes it.
    pub(super) fn watched<R>(&self, round: impl FnOnce() -> R) -> R {
        self.shared.is_draining.store(true, Ordering::Relaxed);
        if self.shared.supplier.is_never_woken() {
            self.shared.word.wake();
        }
        let result = round();
        self.shared.is_draining.store(false, Ordering::Relaxed);
        result
    }
}

impl SupplyState {
    fn run(&self) {
        loop {
            self.word.announce();
            if self.is_ended.load(Ordering::Relaxed) {
                return;
            }
            if self.supplier.supply() {
                let is_watching = self.is_draining.load(Ordering::Relaxed);
                self.word.sleep(if is_watching { INTERVAL } else { Duration::MAX });
            }
        }
    }
}

impl Drop for SupplyThread {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        self.shared.word.wake();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
