//! The thread that writes.

use super::file::OpenFiles;
use super::{Done, Job};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// The time between two attempts to write to a full disk.
const RETRY: Duration = Duration::from_millis(500);
/// The pace of the disk is that of so many bytes, or of so much time.
const PACE_BYTES: u64 = 1 << 20;
const PACE_TIME: Duration = Duration::from_millis(100);

/// The way to the thread; dropping it ends the thread after all jobs.
#[derive(Debug)]
pub(crate) struct Storage {
    jobs: Option<Sender<(u64, Job)>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// What does not fit is dropped instead of tried again: the collector ends. Relaxed: the flag publishes nothing but itself.
    gives_up: AtomicBool,
    /// Bytes in the output directory. Relaxed: each change is one addition, and nothing else is published by it.
    used: AtomicU64,
    /// Bytes of packets that were given and are not done, and how long each takes, in nanoseconds for a MiB. Relaxed: estimates for
    /// [pacing](crate::pacing), which publish nothing but themselves.
    waiting: AtomicU64,
    pace: AtomicU64,
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
        let writer =
            Writer { streams: HashMap::new(), shared: Arc::clone(&shared), quota, rate, busy: Instant::now(), done };
        let thread = std::thread::Builder::new().name("collect-write".into()).spawn(move || writer.run(&receiver))?;
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
        self.shared.used.fetch_add(added, Ordering::Relaxed);
        let change = |used: u64| Some(used.saturating_sub(removed));
        let _ = self.shared.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    /// Drops what does not fit from now on, in place of trying again.
    pub(crate) fn give_up(&self) {
        self.shared.gives_up.store(true, Ordering::Relaxed);
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

struct Writer {
    streams: HashMap<u64, OpenFiles>,
    shared: Arc<Shared>,
    quota: Option<u64>,
    rate: Option<u64>,
    /// Until when a disk of this rate has work.
    busy: Instant,
    done: UnboundedSender<(u64, Done)>,
}

impl Writer {
    fn run(mut self, jobs: &Receiver<(u64, Job)>) {
        let (mut bytes, mut busy) = (0, Duration::ZERO);
        for (handle, job) in jobs {
            let (size, begin) = (job.size(), Instant::now());
            let done = self.work(handle, job);
            self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
            (bytes, busy) = (bytes + size, busy + begin.elapsed());
            if bytes >= PACE_BYTES || busy >= PACE_TIME && bytes > 0 {
                let pace = busy.as_nanos() as u64 * (1 << 20) / bytes;
                // Half of it is what was before.
                self.shared.pace.store(self.shared.pace.load(Ordering::Relaxed).midpoint(pace), Ordering::Relaxed);
                (bytes, busy) = (0, Duration::ZERO);
            }
            if let Some(done) = done {
                // The state machine ends before this thread.
                let _ = self.done.send((handle, done));
            }
        }
    }

    fn work(&mut self, handle: u64, job: Job) -> Option<Done> {
        match job {
            Job::Open { files, from } => {
                let mut new = OpenFiles::new(files);
                let Some(mut old) = self.streams.remove(&handle) else {
                    self.streams.insert(handle, new);
                    return None;
                };
                let moved = match from.map(|from| new.take_tail(&mut old, from)) {
                    None => 0,
                    Some(Ok(moved)) => moved,
                    Some(Err(error)) => {
                        let _ = self.done.send((handle, Done::Full(Some(error.to_string()))));
                        0
                    }
                };
                self.streams.insert(handle, new);
                Some(Done::Opened { entries: old.entries, bytes: old.bytes, moved })
            }
            Job::Packet { sequence, packet, index } => {
                let size = packet.size();
                let is_stored = self.store(handle, size, |files| files.packet(&packet, index.as_ref()));
                // The share of the memory is free before the state machine knows, so that waiting packets come in.
                drop(packet);
                let stream_class = index.map(|index| index.stream_class);
                Some(Done::Packet { sequence, size: is_stored.then_some(size), stream_class })
            }
            Job::Metadata { packet } => {
                let size = packet.size();
                let is_stored = self.store(handle, size, |files| files.append(&packet.bytes, packet.padding));
                is_stored.then_some(Done::Metadata { bytes: size })
            }
            Job::Beacon { time } => Some(Done::Beacon { time }),
            Job::Mark => Some(Done::Marked),
            Job::Release { upto } => Some(Done::Released { upto }),
            Job::Unindex => {
                self.streams.get_mut(&handle)?.unindex();
                None
            }
            Job::Close => {
                self.streams.remove(&handle);
                Some(Done::Closed)
            }
        }
    }

    /// Waits as long as a disk of the rate takes for so many bytes more.
    fn slow_down(&mut self, size: u64) {
        if let Some(rate) = self.rate {
            self.busy = self.busy.max(Instant::now()) + Duration::from_nanos(size * 1_000_000_000 / rate);
            std::thread::sleep(self.busy.saturating_duration_since(Instant::now()));
        }
    }

    /// Writes `size` bytes; waits while the disk is full or the quota is used up, because that can change. Any other error loses them.
    fn store(&mut self, handle: u64, size: u64, write: impl Fn(&mut OpenFiles) -> io::Result<()>) -> bool {
        let Some(files) = self.streams.get_mut(&handle) else { return false };
        let mut was_full = false;
        let is_stored = loop {
            let used = self.shared.used.load(Ordering::Relaxed);
            let result = match self.quota {
                Some(quota) if used.saturating_add(size) > quota => Err(io::ErrorKind::QuotaExceeded.into()),
                _ => write(files),
            };
            let Err(error) = result else {
                self.shared.used.fetch_add(size, Ordering::Relaxed);
                break true;
            };
            let can_change = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            if !was_full {
                let _ = self.done.send((handle, Done::Full(Some(error.to_string()))));
                was_full = true;
            }
            if !can_change || self.shared.gives_up.load(Ordering::Relaxed) {
                break false;
            }
            std::thread::sleep(RETRY);
        };
        if was_full {
            let _ = self.done.send((handle, Done::Full(None)));
        }
        if is_stored {
            self.slow_down(size);
        }
        is_stored
    }
}
