//! A drain shared by the drain thread and the threads that control the session.
//!
//! The drain thread holds the lock while a sink writes, which may take forever if a disk hangs or a pipe has no reader. A thread that
//! controls several sessions waits for the lock with a timeout; after a timeout it does not wait again until the drain thread has completed
//! a round. Operations that involve sinks run on a separate thread.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracepoint_sinks::consumer_loop::ConsumerLoop;
use tracepoint_sinks::{Drain, SinkError, YieldingLock, own_thread};

/// Parts of error messages: the operation was not done; the operation will be done later.
const BLOCKS: &str = "reach the sinks: one of them blocks";
const LATE: &str = "wait for the sinks: one of them blocks; the operation will complete when that sink continues";

/// Returns whether the operation that [`SharedDrain::act`] stopped waiting for will be done later.
pub(crate) fn will_complete_later(error: &SinkError) -> bool {
    error.io_error().kind() == io::ErrorKind::TimedOut
}

#[derive(Debug)]
pub(crate) struct SharedDrain {
    /// `None` once it was taken.
    drain: YieldingLock<Option<Drain>>,
    /// The loop of the drain thread.
    rounds: ConsumerLoop,
    /// Maximum time that controlling threads wait for the lock; unlimited until it is set.
    timeout: OnceLock<Duration>,
    /// True if a wait timed out since the last round of the drain thread. Relaxed: a stale value at worst costs one more wait.
    is_overdue: AtomicBool,
}

impl SharedDrain {
    pub(crate) fn new(drain: Drain) -> Self {
        let rounds = ConsumerLoop::new(drain.wake_word());
        let drain = YieldingLock::new(Some(drain));
        Self { drain, rounds, timeout: OnceLock::new(), is_overdue: AtomicBool::new(false) }
    }

    /// Limits the time that controlling threads wait. Only the first call has an effect.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        let _ = self.timeout.set(timeout);
    }

    /// The loop of the drain thread.
    pub(crate) const fn rounds(&self) -> &ConsumerLoop {
        &self.rounds
    }

    /// Runs a round of the drain thread. `None` once the drain was taken, here and below.
    pub(crate) fn round<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        let result = self.drain.lock_for_round().as_mut().map(act);
        self.is_overdue.store(false, Ordering::Relaxed);
        result
    }

    /// Waits for the lock without limit.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        self.drain.lock().as_mut().map(act)
    }

    /// Runs an operation that involves no sink; returns an error if the lock is not free in time.
    pub(crate) fn inspect<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Result<Option<R>, SinkError> {
        let Some(&timeout) = self.timeout.get() else { return Ok(self.with(act)) };
        let timeout = if self.is_overdue.load(Ordering::Relaxed) { Duration::ZERO } else { timeout };
        match self.drain.lock_within(timeout) {
            Some(mut drain) => Ok(drain.as_mut().map(act)),
            None => Err(self.overdue(BLOCKS, io::ErrorKind::WouldBlock)),
        }
    }

    /// Runs an operation that involves no sink if the lock is free now.
    pub(crate) fn try_inspect<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        self.drain.lock_within(Duration::ZERO)?.as_mut().map(act)
    }

    /// Runs an operation that involves sinks; returns an error if it does not complete in time. After [`LATE`] it completes later.
    pub(crate) fn act<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Drain) -> Result<R, SinkError> + Send + 'static,
    ) -> Result<Option<R>, SinkError> {
        let Some(&timeout) = self.timeout.get() else { return self.with(act).transpose() };
        if self.is_overdue.load(Ordering::Relaxed) {
            return Err(self.overdue(BLOCKS, io::ErrorKind::WouldBlock));
        }
        let (done, is_done) = channel();
        let result = Arc::new(Mutex::new(None));
        let (drain, store) = (Arc::clone(self), Arc::clone(&result));
        let body = move || {
            let mut locked = drain.drain.lock();
            let acted = locked.as_mut().map(act).transpose();
            *store.lock().unwrap_or_else(PoisonError::into_inner) = Some(acted);
            // Fails if the caller has timed out; the result is then dropped.
            let _ = done.send(());
        };
        let spawned = own_thread::spawn("tracepoint-sinks", body);
        spawned.map_err(|error| SinkError::new("start a thread for the sinks", error))?;
        if is_done.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
            return Err(self.overdue(LATE, io::ErrorKind::TimedOut));
        }
        let acted = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        acted.unwrap_or_else(|| Err(SinkError::new("use the sinks", io::Error::other("one panicked"))))
    }

    /// Takes the drain; waits for the lock without limit.
    pub(crate) fn take(&self) -> Option<Drain> {
        self.drain.lock().take()
    }

    fn overdue(&self, what: &str, kind: io::ErrorKind) -> SinkError {
        self.is_overdue.store(true, Ordering::Relaxed);
        SinkError::new(what, kind.into())
    }
}
