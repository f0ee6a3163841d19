//! Handle to the thread that writes.

mod writer;

use super::{Job, JobResult};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use writer::Writer;

/// Handle to the thread. Dropping it ends the thread after all queued jobs.
#[derive(Debug)]
pub(crate) struct Storage {
    jobs: Option<Sender<(u64, Job)>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<StorageState>,
}

#[derive(Debug, Default)]
pub(super) struct StorageState {
    /// Set when the collector ends: packets without space are dropped and not retried. Relaxed: the flag publishes no other data.
    pub(super) gives_up: AtomicBool,
    /// Streams whose packets do not wait for space.
    impatient: Mutex<HashSet<u64>>,
    /// Bytes in the output directory. Relaxed: each change is one addition, and it publishes no other data.
    pub(super) used: AtomicU64,
    /// Bytes of packets that are queued, and the write speed in nanoseconds per MiB. Relaxed: estimates for [pacing](crate::pacing), which publish no
    /// other data.
    pub(super) waiting: AtomicU64,
    pub(super) pace: AtomicU64,
}

impl Storage {
    /// Starts the thread. `quota` is the maximum size of the output directory in bytes, and `used` its present size; results are sent to `done`.
    /// `rate` makes the disk as slow as a test requires, in bytes per second.
    pub(crate) fn start(
        used: u64,
        quota: Option<u64>,
        rate: Option<u64>,
        done: UnboundedSender<(u64, JobResult)>,
    ) -> io::Result<Self> {
        let (jobs, receiver) = channel();
        let shared = Arc::new(StorageState { used: AtomicU64::new(used), ..StorageState::default() });
        let writer = Writer {
            jobs: receiver,
            later: VecDeque::new(),
            streams: HashMap::new(),
            shared: Arc::clone(&shared),
            quota,
            rate,
            busy: Instant::now(),
            removing: Duration::ZERO,
            done,
        };
        let thread = std::thread::Builder::new().name("collect-write".into()).spawn(move || writer.run())?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), shared })
    }

    /// Queues a job for the stream with this handle.
    pub(crate) fn give(&self, handle: u64, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread runs until the sender is dropped, so this does not fail.
            self.shared.waiting.fetch_add(job.size(), Ordering::Relaxed);
            let _ = jobs.send((handle, job));
        }
    }

    /// Returns the estimated duration of the queued work.
    pub(crate) fn work(&self) -> Duration {
        let [waiting, pace] = [&self.shared.waiting, &self.shared.pace].map(|it| it.load(Ordering::Relaxed));
        Duration::from_nanos((waiting >> 10).saturating_mul(pace) >> 10)
    }

    /// Returns the number of bytes in the output directory.
    pub(crate) fn used(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Records bytes that others have added to the output directory or removed from it.
    pub(crate) fn resized(&self, added: u64, removed: u64) {
        self.shared.resized(added, removed);
    }

    /// Drops packets of this stream that do not fit, without waiting for space, until it is [closed](Self::closed).
    pub(crate) fn drop_waiting(&self, handle: u64) {
        self.shared.impatient.lock().unwrap_or_else(PoisonError::into_inner).insert(handle);
    }

    /// Records that a stream is closed.
    pub(crate) fn closed(&self, handle: u64) {
        self.shared.impatient.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    }

    /// Returns the number of streams whose packets do not wait for space.
    #[cfg(test)]
    pub(crate) fn impatient(&self) -> usize {
        self.shared.impatient.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Drops all packets that do not fit from now on, without waiting for space.
    pub(crate) fn give_up(&self) {
        self.shared.gives_up.store(true, Ordering::Relaxed);
    }
}

impl StorageState {
    /// Returns whether packets of a stream are dropped if they do not fit.
    fn drops(&self, handle: u64) -> bool {
        let impatient = || self.impatient.lock().unwrap_or_else(PoisonError::into_inner).contains(&handle);
        self.gives_up.load(Ordering::Relaxed) || impatient()
    }

    pub(super) fn resized(&self, added: u64, removed: u64) {
        self.used.fetch_add(added, Ordering::Relaxed);
        let change = |used: u64| Some(used.saturating_sub(removed));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // The panic message was printed already.
            let _ = thread.join();
        }
    }
}
