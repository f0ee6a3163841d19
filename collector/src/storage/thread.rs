//! The way to the thread that writes.

mod writer;

use super::{Done, Job};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use writer::Writer;

/// The way to the thread; dropping it ends the thread after all jobs.
#[derive(Debug)]
pub(crate) struct Storage {
    jobs: Option<Sender<(u64, Job)>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    /// What does not fit is dropped instead of tried again: the collector ends. Relaxed: the flag publishes nothing but itself.
    pub(super) gives_up: AtomicBool,
    /// The streams of which nothing waits for room.
    impatient: Mutex<HashSet<u64>>,
    /// Bytes in the output directory. Relaxed: each change is one addition, and nothing else is published by it.
    pub(super) used: AtomicU64,
    /// Bytes of packets that were given and are not done, and how long each takes, in nanoseconds for a MiB. Relaxed: estimates for
    /// [pacing](crate::pacing), which publish nothing but themselves.
    pub(super) waiting: AtomicU64,
    pub(super) pace: AtomicU64,
}

impl Storage {
    /// Starts the thread. `quota` is the largest size of the output in bytes, of which `used` are used; results go to `done`. `rate` is that of
    /// a disk that is as slow as a test needs, in bytes per second.
    pub(crate) fn start(
        used: u64,
        quota: Option<u64>,
        rate: Option<u64>,
        done: UnboundedSender<(u64, Done)>,
    ) -> io::Result<Self> {
        let (jobs, receiver) = channel();
        let shared = Arc::new(Shared { used: AtomicU64::new(used), ..Shared::default() });
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

    /// Gives the thread a job for the stream with this handle.
    pub(crate) fn give(&self, handle: u64, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends after this.
            self.shared.waiting.fetch_add(job.size(), Ordering::Relaxed);
            let _ = jobs.send((handle, job));
        }
    }

    /// How long the thread has work, at its pace so far.
    pub(crate) fn work(&self) -> Duration {
        let [waiting, pace] = [&self.shared.waiting, &self.shared.pace].map(|it| it.load(Ordering::Relaxed));
        Duration::from_nanos((waiting >> 10).saturating_mul(pace) >> 10)
    }

    /// Bytes in the output directory.
    pub(crate) fn used(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Bytes were added to the output directory, or removed, by others.
    pub(crate) fn resized(&self, added: u64, removed: u64) {
        self.shared.resized(added, removed);
    }

    /// Drops what does not fit of this stream, in place of trying again, until it is [closed](Self::closed).
    pub(crate) fn drop_waiting(&self, handle: u64) {
        self.shared.impatient.lock().unwrap_or_else(PoisonError::into_inner).insert(handle);
    }

    /// A stream is known to be closed.
    pub(crate) fn closed(&self, handle: u64) {
        self.shared.impatient.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    }

    /// How many streams drop what does not fit.
    #[cfg(test)]
    pub(crate) fn impatient(&self) -> usize {
        self.shared.impatient.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Drops what does not fit from now on, in place of trying again.
    pub(crate) fn give_up(&self) {
        self.shared.gives_up.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Whether what does not fit of a stream is dropped.
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
            // A panic was printed.
            let _ = thread.join();
        }
    }
}
