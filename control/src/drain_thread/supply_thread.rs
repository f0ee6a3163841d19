//! The thread that makes rings while the drain is in a sink that is slow: threads go on in them whose own are full.
//!
//! ```text
//!   parked ──the drain begins a round that has packets──▶ watching: supplies every 2 ms ──no such round for 10 ms──▶ parked
//! ```
//!
//! It is parked while the drain sleeps, so that an idle session has one thread that wakes up, and not two.

use crate::own_thread::leave_signals_to_the_program;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle, park, sleep};
use std::time::Duration;
use tracepoint_sinks::RingSupplier;

/// Thread name, as shown by `top -H`.
const NAME: &str = "tracepoint-supply";
/// The interval between two looks: rings of 1 MiB get full in 8 ms at 5 million events a second, and two are spare.
const INTERVAL: Duration = Duration::from_millis(2);
/// After how many looks without a round it parks.
const LOOKS: u32 = 5;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct SupplyThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

// Relaxed accesses: `park` and `unpark` order what they must, and a look more or less does no harm.
#[derive(Debug, Default)]
struct Shared {
    /// The looks that are left until the thread parks.
    looks: AtomicU32,
    /// Whether the drain is in a round.
    is_draining: AtomicBool,
    is_ended: AtomicBool,
}

impl SupplyThread {
    pub(super) fn start(supplier: RingSupplier) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let body = move || {
            tracepoint_core::private::never_trace_this_thread();
            leave_signals_to_the_program();
            own.watch(&supplier);
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Runs a round of the drain that has packets, watched.
    pub(super) fn watched<R>(&self, round: impl FnOnce() -> R) -> R {
        self.shared.is_draining.store(true, Ordering::Relaxed);
        if self.shared.looks.swap(LOOKS, Ordering::Relaxed) == 0 {
            self.unpark();
        }
        let result = round();
        self.shared.is_draining.store(false, Ordering::Relaxed);
        result
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Shared {
    fn watch(&self, supplier: &RingSupplier) {
        while !self.is_ended.load(Ordering::Relaxed) {
            let is_draining = self.is_draining.load(Ordering::Relaxed);
            if is_draining {
                supplier.supply();
            }
            let left = self.looks.load(Ordering::Relaxed);
            if is_draining || left > 0 {
                // Fails if a round has begun meanwhile.
                let next = if is_draining { LOOKS } else { left - 1 };
                let _ = self.looks.compare_exchange(left, next, Ordering::Relaxed, Ordering::Relaxed);
                sleep(INTERVAL);
            } else {
                park();
            }
        }
    }
}

impl Drop for SupplyThread {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        self.unpark();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
