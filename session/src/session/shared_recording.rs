//! Operations on a recording that any thread may call without the lock of its session: snapshots, rotation, flushing.
//!
//! A thread that panics may hold that lock, and its panic hook takes a snapshot. A snapshot therefore waits for no lock. The end of the
//! recording waits for snapshots that are being written, because it removes the rings.

use super::rings::RingStore;
use super::{SessionError, Status};
use crate::drain_thread::shared::SharedDrain;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, PoisonError, RwLock, TryLockError};
use tracepoint_reader::internal::snapshot_memory;
use tracepoint_session_io::SnapshotSummary;
use tracepoint_sinks::Drain;

/// The part of a recording that it shares with other threads.
#[derive(Debug)]
pub(crate) struct SharedRecording {
    name: String,
    /// The process that started it.
    process: u32,
    drain: Arc<SharedDrain>,
    /// `None` once the recording has ended. Snapshots hold the lock for reading. It is held for writing only at the end, so a snapshot that
    /// finds it locked for writing knows that the recording is ending.
    rings: RwLock<Option<RingStore>>,
}

impl SharedRecording {
    pub(super) fn new(name: &str, drain: &Arc<SharedDrain>, rings: RingStore) -> Arc<Self> {
        let (name, process, drain) = (name.to_owned(), process::id(), Arc::clone(drain));
        Arc::new(Self { name, process, drain, rings: RwLock::new(Some(rings)) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the recording has not ended. Does not wait.
    pub(crate) fn is_running(&self) -> bool {
        match self.rings.try_read() {
            Ok(rings) => rings.is_some(),
            Err(TryLockError::Poisoned(rings)) => rings.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Returns the current status; waits for a sink that is being written to.
    pub(super) fn status(&self) -> Option<Status> {
        self.drain.with(|drain| Status::new(drain.report(), self.drain.rounds().counters()))
    }

    /// Writes the current contents of the rings to `out`.
    pub(crate) fn snapshot(&self, out: &Path) -> Result<SnapshotSummary, SessionError> {
        self.check_caller()?;
        let rings = match self.rings.try_read() {
            Ok(rings) => rings,
            Err(TryLockError::Poisoned(rings)) => rings.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(self.stopped()),
        };
        let taken = match rings.as_ref().ok_or_else(|| self.stopped())? {
            RingStore::Files(dir) => tracepoint_reader::recover::snapshot(dir.path(), out),
            RingStore::Memory(image) => snapshot_memory(|| image.rings(), out),
        };
        let failed = |source| SessionError::Snapshot { name: self.name.clone(), source };
        Ok(SnapshotSummary::of(out, taken.map_err(failed)?))
    }

    /// Makes the sinks that can rotate continue in a new chunk.
    pub(crate) fn rotate(&self) -> Result<Vec<PathBuf>, SessionError> {
        self.check_caller()?;
        let rotate = |drain: &mut Drain| drain.can_rotate().then(|| drain.rotate()).transpose();
        let rotated = self.drain.act(rotate).map_err(SessionError::Rotate)?.ok_or_else(|| self.stopped())?;
        rotated.ok_or_else(|| SessionError::CannotRotate(self.name.clone()))
    }

    /// Closes the open packets, and moves all closed ones to the sinks.
    pub(crate) fn flush(&self) -> Result<(), SessionError> {
        self.check_caller()?;
        let flush = |drain: &mut Drain| {
            drain.flush_all();
            Ok(())
        };
        self.drain.act(flush).map_err(SessionError::Change)?.ok_or_else(|| self.stopped())
    }

    /// Ends access to the rings: no further snapshots start, and none is being written when this returns.
    pub(super) fn close(&self) {
        *self.rings.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns whether this process started it.
    pub(super) fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// Fails if the caller cannot wait for the recording.
    pub(super) fn check_caller(&self) -> Result<(), SessionError> {
        if !self.is_ours() {
            return Err(SessionError::Forked { name: self.name.clone(), process: self.process });
        }
        if tracepoint_core::in_probe() {
            return Err(SessionError::InsideProbe(self.name.clone()));
        }
        Ok(())
    }

    pub(super) fn stopped(&self) -> SessionError {
        SessionError::Stopped(self.name.clone())
    }
}
