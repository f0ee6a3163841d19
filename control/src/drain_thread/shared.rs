//! A drain that several have.
//!
//! Its thread has it locked for as long as a sink takes, which is for ever where a disk hangs, or nobody reads from a pipe. Whoever
//! controls more than this one session waits for it for a while, and then not again before a round has come to its end. What has to do
//! with sinks itself is done by a thread of its own there.

use crate::own_thread::leave_signals_to_the_program;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};
use tracepoint_sinks::{Drain, SinkError};

/// The pauses between two looks whether it can be had.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(1);
/// For so long its thread leaves it to whoever wants it: a few of those pauses.
const LEFT: Duration = Duration::from_millis(5);

/// What could not be done, and what may be done later.
const BLOCKS: &str = "reach the sinks: one of them blocks";
const LATE: &str = "wait for the sinks: one of them blocks; it is done when that goes on";

/// Whether what [`SharedDrain::act`] could not wait for is done later.
pub(crate) fn is_late(error: &SinkError) -> bool {
    error.io_error().kind() == io::ErrorKind::TimedOut
}

#[derive(Debug)]
pub(crate) struct SharedDrain {
    /// `None` once it was taken out.
    drain: Mutex<Option<Drain>>,
    /// How long whoever controls the session waits for it, from when that is said; before, as long as it takes.
    patience: OnceLock<Duration>,
    // Nothing is ordered by these two: at worst somebody waits once more, or a moment longer.
    /// Whether it was waited for in vain since its thread's last round.
    is_overdue: AtomicBool,
    /// Whether somebody waits for it.
    is_wanted: AtomicBool,
}

impl SharedDrain {
    pub(crate) const fn new(drain: Drain) -> Self {
        let (is_overdue, is_wanted) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { drain: Mutex::new(Some(drain)), patience: OnceLock::new(), is_overdue, is_wanted }
    }

    /// From here on whoever controls the session does not wait longer than that.
    pub(crate) fn wait_no_longer_than(&self, patience: Duration) {
        // Said once.
        let _ = self.patience.set(patience);
    }

    /// What a panic left half done is done by the next one.
    fn lock(&self) -> MutexGuard<'_, Option<Drain>> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For its thread; `None` once it was taken out, here and below.
    pub(crate) fn round<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        let begun = Instant::now();
        while self.is_wanted.load(Ordering::Relaxed) && begun.elapsed() < LEFT {
            sleep(SHORTEST);
        }
        let result = self.lock().as_mut().map(act);
        self.is_overdue.store(false, Ordering::Relaxed);
        result
    }

    /// However long it takes.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        self.lock().as_mut().map(act)
    }

    /// Something that has nothing to do with what sinks write; an error if it cannot be done in time.
    pub(crate) fn look<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Result<Option<R>, SinkError> {
        let Some(&patience) = self.patience.get() else { return Ok(self.with(act)) };
        let patience = if self.is_overdue.load(Ordering::Relaxed) { Duration::ZERO } else { patience };
        self.is_wanted.store(true, Ordering::Relaxed);
        let locked = self.lock_within(patience);
        self.is_wanted.store(false, Ordering::Relaxed);
        match locked {
            Some(mut drain) => Ok(drain.as_mut().map(act)),
            None => Err(self.overdue(BLOCKS, io::ErrorKind::WouldBlock)),
        }
    }

    /// The same, if it can be done at once.
    pub(crate) fn glance<R>(&self, act: impl FnOnce(&mut Drain) -> R) -> Option<R> {
        self.lock_within(Duration::ZERO)?.as_mut().map(act)
    }

    /// Something that sinks take part in; an error if it is not done in time. It is done later then.
    pub(crate) fn act<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Drain) -> Result<R, SinkError> + Send + 'static,
    ) -> Result<Option<R>, SinkError> {
        let Some(&patience) = self.patience.get() else { return self.with(act).transpose() };
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
            // Who has waited in vain is not told any more.
            let _ = done.send(locked.as_mut().map(act).transpose());
        };
        let spawned = Builder::new().name("tracepoint-sinks".to_owned()).spawn(body);
        spawned.map_err(|error| SinkError::new("start a thread for what sinks do", error))?;
        match result.recv_timeout(patience) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(self.overdue(LATE, io::ErrorKind::TimedOut)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(SinkError::new("use the sinks", io::Error::other("one panicked")))
            }
        }
    }

    /// Takes the drain out, however long it takes.
    pub(crate) fn take(&self) -> Option<Drain> {
        self.lock().take()
    }

    fn overdue(&self, what: &str, kind: io::ErrorKind) -> SinkError {
        self.is_overdue.store(true, Ordering::Relaxed);
        SinkError::new(what, kind.into())
    }

    fn lock_within(&self, patience: Duration) -> Option<MutexGuard<'_, Option<Drain>>> {
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
}
