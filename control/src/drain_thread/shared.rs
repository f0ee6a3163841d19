//! A drain shared by the drain thread and the threads that control the session.
//!
//! The drain thread holds the lock while a sink writes, which may take forever if a disk hangs or a pipe has no reader. A thread that
//! controls several sessions waits for the lock with a timeout; after a timeout it does not wait again until the drain thread has
//! completed a round. Operations that involve sinks run on a thread of their own.

use crate::consumer_loop::ConsumerLoop;
use crate::own_thread::leave_signals_to_the_program;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};
use tracepoint_sinks::{Drain, SinkError};

/// Bounds of the pause between attempts to lock.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(1);
/// How long the drain thread leaves the lock to a waiting thread: a few of those pauses.
const YIELD: Duration = Duration::from_millis(5);

/// Actions of the errors: one that was not done, and one that will be done later.
const BLOCKS: &str = "reach the sinks: one of them blocks";
const LATE: &str = "wait for the sinks: one of them blocks; the operation will complete when that sink continues";

/// Whether the operation that [`SharedDrain::act`] did not wait for will be done later.
pub(crate) fn will_complete_later(error: &SinkError) -> bool {
    error.io_error().kind() == io::ErrorKind::TimedOut
}

#[derive(Debug)]
pub(crate) struct SharedDrain {
    /// `None` once it was taken.
    drain: Mutex<Option<Drain>>,
    /// The loop of the drain thread.
    rounds: ConsumerLoop,
    /// How long controlling threads wait for the lock; without limit until it is set.
    timeout: OnceLock<Duration>,
    // Relaxed accesses: a stale value of these two at worst costs one more wait, or a slightly longer one.
    /// Whether a wait timed out since the last round of the drain thread.
    is_overdue: AtomicBool,
    /// Whether a thread waits for the lock.
    is_wanted: AtomicBool,
}

impl SharedDrain {
    pub(crate) fn new(drain: Drain) -> Self {
        let rounds = ConsumerLoop::new(drain.wake_word());
        let (is_overdue, is_wanted) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { drain: Mutex::new(Some(drain)), rounds, timeout: OnceLock::new(), is_overdue, is_wanted }
    }

    /// Limits how long controlling threads wait. Only the first call has an effect.
    pub(crate) fn set_timeout(&self, timeout: Duration) {
        let _ = self.timeout.set(timeout);
    }

    /// The loop of the drain thread.
    pub(crate) const fn rounds(&self) -> &ConsumerLoop {
        &self.rounds
    }

    /// Ignores poisoning: the next round repeats what a panic interrupted.
    fn lock(&self) -> MutexGuard<'_, Option<Drain>> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the drain thread. `None` once the drain was taken, here and below.
    pub(crate) fn round<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        let begun = Instant::now();
        while self.is_wanted.load(Ordering::Relaxed) && begun.elapsed() < YIELD {
            sleep(SHORTEST);
        }
        let result = self.lock().as_mut().map(act);
        self.is_overdue.store(false, Ordering::Relaxed);
        result
    }

    /// Waits for the lock without limit.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        self.lock().as_mut().map(act)
    }

    /// Runs an operation that involves no sink; an error if the lock is not free in time.
    pub(crate) fn inspect<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Result<Option<R>, SinkError> {
        let Some(&timeout) = self.timeout.get() else { return Ok(self.with(act)) };
        let timeout = if self.is_overdue.load(Ordering::Relaxed) { Duration::ZERO } else { timeout };
        self.is_wanted.store(true, Ordering::Relaxed);
        let locked = self.lock_within(timeout);
        self.is_wanted.store(false, Ordering::Relaxed);
        match locked {
            Some(mut drain) => Ok(drain.as_mut().map(act)),
            None => Err(self.overdue(BLOCKS, io::ErrorKind::WouldBlock)),
        }
    }

    /// Runs an operation that involves no sink if the lock is free now.
    pub(crate) fn try_inspect<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        self.lock_within(Duration::ZERO)?.as_mut().map(act)
    }

    /// Runs an operation that involves sinks; an error if it does not complete in time. After [`LATE`] it completes later.
    pub(crate) fn act<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Drain) -> Result<R, SinkError> + Send + 'static,
    ) -> Result<Option<R>, SinkError> {
        let Some(&timeout) = self.timeout.get() else { return self.with(act).transpose() };
        if self.is_overdue.load(Ordering::Relaxed) {
            return Err(self.overdue(BLOCKS, io::ErrorKind::WouldBlock));
        }
        let (done, result) = channel();
        let drain = Arc::clone(self);
        let body = move || {
            tracepoint_core::private::never_trace_this_thread();
            leave_signals_to_the_program();
            drain.is_wanted.store(true, Ordering::Relaxed);
            let mut locked = drain.lock();
            drain.is_wanted.store(false, Ordering::Relaxed);
            // Fails if the caller has timed out; the result is then dropped.
            let _ = done.send(locked.as_mut().map(act).transpose());
        };
        let spawned = Builder::new().name("tracepoint-sinks".to_owned()).spawn(body);
        spawned.map_err(|error| SinkError::new("start a thread for the sinks", error))?;
        match result.recv_timeout(timeout) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(self.overdue(LATE, io::ErrorKind::TimedOut)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(SinkError::new("use the sinks", io::Error::other("one panicked")))
            }
        }
    }

    /// Takes the drain; waits for the lock without limit.
    pub(crate) fn take(&self) -> Option<Drain> {
        self.lock().take()
    }

    fn overdue(&self, what: &str, kind: io::ErrorKind) -> SinkError {
        self.is_overdue.store(true, Ordering::Relaxed);
        SinkError::new(what, kind.into())
    }

    fn lock_within(&self, timeout: Duration) -> Option<MutexGuard<'_, Option<Drain>>> {
        let (begun, mut pause) = (Instant::now(), SHORTEST);
        loop {
            match self.drain.try_lock() {
                Ok(drain) => return Some(drain),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if begun.elapsed() >= timeout => return None,
                Err(TryLockError::WouldBlock) => sleep(pause),
            }
            pause = (pause * 2).min(LONGEST);
        }
    }
}
