//! A drain that several have.
//!
//! Its thread has it locked for as long as a sink takes, which is for ever where a disk hangs, or nobody reads from a pipe. Whoever
//! controls more than this one session does not wait for that.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_sinks::{Drain, SinkError};

/// The pauses between two looks.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct SharedDrain {
    drain: Mutex<Drain>,
    /// How long whoever controls the session waits for it; `None`: as long as it takes.
    patience: Option<Duration>,
    /// Whether it was waited for in vain, the last time. It is not waited for again before it could be had.
    is_overdue: AtomicBool,
}

impl SharedDrain {
    pub(crate) const fn new(drain: Drain, patience: Option<Duration>) -> Self {
        Self { drain: Mutex::new(drain), patience, is_overdue: AtomicBool::new(false) }
    }

    /// The drain, whatever it takes. What a panic left half done is done by the next one.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Drain> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The drain, if it can be had in time.
    pub(crate) fn lock_in_time(&self) -> Result<MutexGuard<'_, Drain>, SinkError> {
        let Some(patience) = self.patience else { return Ok(self.lock()) };
        // Nothing is ordered by it: at worst somebody waits once more.
        let patience = if self.is_overdue.load(Ordering::Relaxed) { Duration::ZERO } else { patience };
        let drain = self.lock_within(patience);
        self.is_overdue.store(drain.is_none(), Ordering::Relaxed);
        drain.ok_or_else(|| SinkError::new("reach the sinks: one of them blocks", io::ErrorKind::TimedOut.into()))
    }

    fn lock_within(&self, patience: Duration) -> Option<MutexGuard<'_, Drain>> {
        let (begun, mut pause) = (Instant::now(), SHORTEST);
        loop {
            match self.drain.try_lock() {
                Ok(drain) => return Some(drain),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if begun.elapsed() >= patience => return None,
                Err(TryLockError::WouldBlock) => sleep(pause),
            }
            pause = (pause * 2).min(LONGEST);
        }
    }

    pub(crate) fn into_inner(self) -> Drain {
        self.drain.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
