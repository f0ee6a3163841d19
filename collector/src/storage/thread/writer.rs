//! The thread that writes.

#[cfg(test)]
mod tests;

use super::StorageState;
use crate::storage::file::{Files, OpenFiles, bytes_below};
use crate::storage::{Job, JobResult, SequencedPacket};
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::mem;
use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tracepoint_wire::relay::METADATA_CHANNEL;

/// Interval of attempts to write to a full disk.
const RETRY: Duration = Duration::from_millis(500);
/// Maximum number of consecutive packets of a stream, and of their bytes, that are written together.
const MAX_BATCH_PACKETS: usize = 64;
const MAX_BATCH_BYTES: u64 = 256 << 10;
/// The write speed is measured over at least this many bytes or this much time.
const PACE_BYTES: u64 = 1 << 20;
const PACE_TIME: Duration = Duration::from_millis(100);

/// The state of the thread.
pub(super) struct Writer {
    pub(super) jobs: Receiver<(u64, Job)>,
    /// Jobs that arrived while a packet waited for space.
    pub(super) later: VecDeque<(u64, Job)>,
    pub(super) streams: HashMap<u64, OpenFiles>,
    pub(super) shared: Arc<StorageState>,
    pub(super) quota: Option<u64>,
    pub(super) rate: Option<u64>,
    /// When the simulated slow disk becomes idle.
    pub(super) busy: Instant,
    /// Time spent on removals during the current job.
    pub(super) removing: Duration,
    pub(super) done: UnboundedSender<(u64, JobResult)>,
}

impl Writer {
    pub(super) fn run(mut self) {
        let (mut bytes, mut busy) = (0, Duration::ZERO);
        while let Some((handle, job)) = self.later.pop_front().or_else(|| self.jobs.recv().ok()) {
            let begin = Instant::now();
            let size = self.work(handle, job);
            self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
            // Removals say nothing about the write speed, even if one runs between packets of a batch.
            (bytes, busy) = (bytes + size, busy + begin.elapsed().saturating_sub(mem::take(&mut self.removing)));
            if bytes >= PACE_BYTES || busy >= PACE_TIME && bytes > 0 {
                let pace = busy.as_nanos() as u64 * (1 << 20) / bytes;
                // Averaged with the earlier value.
                self.shared.pace.store(self.shared.pace.load(Ordering::Relaxed).midpoint(pace), Ordering::Relaxed);
                (bytes, busy) = (0, Duration::ZERO);
            }
        }
    }

    fn tell(&self, handle: u64, done: JobResult) {
        // Fails only once the state machine has ended, which needs no results.
        let _ = self.done.send((handle, done));
    }

    /// Runs a job and reports its result. Returns the number of bytes that were to be written.
    fn work(&mut self, handle: u64, job: Job) -> u64 {
        let size = job.size();
        let done = match job {
            Job::Open { files, from } => self.open(handle, files, from),
            Job::Packet(first) => return self.packets(handle, first),
            Job::Metadata { packet } => {
                let packet = SequencedPacket { sequence: 0, packet, index: None };
                let is_stored = self.store(handle, size, |files| files.packets(from_ref(&packet)));
                is_stored.then_some(JobResult::Metadata { bytes: size })
            }
            Job::Beacon { time } => Some(JobResult::Beacon { time }),
            Job::Mark => Some(JobResult::Marked),
            Job::Release { upto } => Some(JobResult::Released { upto }),
            Job::Unindex => {
                self.streams.get_mut(&handle).into_iter().for_each(OpenFiles::unindex);
                None
            }
            Job::Remove { directory, bytes } => Some(self.remove(&directory, bytes)),
            Job::Close => {
                self.streams.remove(&handle).into_iter().for_each(OpenFiles::close);
                Some(JobResult::Closed)
            }
        };
        if let Some(done) = done {
            self.tell(handle, done);
        }
        size
    }

    fn open(&mut self, handle: u64, files: Files, from: Option<u64>) -> Option<JobResult> {
        let mut new = OpenFiles::new(files);
        let Some(mut old) = self.streams.remove(&handle) else {
            self.streams.insert(handle, new);
            return None;
        };
        let moved = match from.map(|from| new.take_tail(&mut old, from)) {
            None => 0,
            Some(Ok(moved)) => moved,
            Some(Err(error)) => {
                self.tell(handle, JobResult::Full(Some(error.to_string())));
                0
            }
        };
        self.streams.insert(handle, new);
        Some(JobResult::Opened { entries: old.entries, bytes: old.bytes, moved })
    }

    /// Writes a packet and the consecutive ones of the same stream behind it, together if there is space for all. Returns their size in bytes.
    fn packets(&mut self, handle: u64, first: SequencedPacket) -> u64 {
        let (mut size, mut packets) = (first.packet.size(), vec![first]);
        while packets.len() < MAX_BATCH_PACKETS {
            match self.later.pop_front().or_else(|| self.jobs.try_recv().ok()) {
                Some((of, Job::Packet(next))) if of == handle && size + next.packet.size() <= MAX_BATCH_BYTES => {
                    size += next.packet.size();
                    packets.push(next);
                }
                // Removals do not wait behind a packet.
                Some((of, Job::Remove { directory, bytes })) => {
                    let done = self.remove(&directory, bytes);
                    self.tell(of, done);
                }
                Some(other) => {
                    self.later.push_front(other);
                    break;
                }
                None => break,
            }
        }
        let are_stored =
            packets.len() > 1 && matches!(self.write(handle, size, |files| files.packets(&packets)), Some(Ok(())));
        for it in packets {
            let (sequence, bytes) = (it.sequence, it.packet.size());
            let is_stored = are_stored || self.store(handle, bytes, |files| files.packets(from_ref(&it)));
            let stream_class = it.index.map(|index| index.stream_class);
            // Release the memory before the state machine gets the result, so that waiting packets can be read.
            drop(it);
            self.tell(handle, JobResult::Packet { sequence, size: is_stored.then_some(bytes), stream_class });
        }
        size
    }

    /// Removes a trace, its metadata first.
    fn remove(&mut self, directory: &Path, bytes: u64) -> JobResult {
        let begin = Instant::now();
        let size = bytes_below(directory);
        let metadata = match fs::remove_file(directory.join(METADATA_CHANNEL)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let is_gone = metadata.is_ok();
        let failed = metadata.and_then(|()| fs::remove_dir_all(directory)).err();
        self.shared.resized(0, size.saturating_sub(failed.as_ref().map_or(0, |_| bytes_below(directory))));
        let failed = failed.map(|error| format!("cannot remove {}: {error}", directory.display()));
        self.removing += begin.elapsed();
        JobResult::Removed { bytes, is_gone, failed }
    }

    /// Waits before the next attempt to write to a full disk, at most until a directory is removed; returns whether one was. Postpones other jobs.
    fn wait_for_room(&mut self) -> bool {
        let until = Instant::now() + RETRY;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.jobs.recv_timeout(left) {
                Ok((handle, Job::Remove { directory, bytes })) => {
                    let done = self.remove(&directory, bytes);
                    self.tell(handle, done);
                    return true;
                }
                Ok(job) => self.later.push_back(job),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(left);
                    return false;
                }
            }
        }
    }

    /// Waits as long as a disk with the simulated rate would take for `size` bytes.
    fn slow_down(&mut self, size: u64) {
        if let Some(rate) = self.rate {
            self.busy = self.busy.max(Instant::now()) + Duration::from_nanos(size * 1_000_000_000 / rate);
            std::thread::sleep(self.busy.saturating_duration_since(Instant::now()));
        }
    }

    /// Writes `size` bytes if the quota allows it. `None` if the stream has no files.
    fn write(
        &mut self,
        handle: u64,
        size: u64,
        write: impl Fn(&mut OpenFiles) -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        let files = self.streams.get_mut(&handle)?;
        let used = self.shared.used.load(Ordering::Relaxed);
        let result = match self.quota {
            Some(quota) if used.saturating_add(size) > quota => Err(io::ErrorKind::QuotaExceeded.into()),
            _ => write(files),
        };
        if result.is_ok() {
            self.shared.used.fetch_add(size, Ordering::Relaxed);
            self.slow_down(size);
        }
        Some(result)
    }

    /// Like [`write`](Self::write), but waits while the disk is full or the quota is used up. Any other error loses the bytes. Reports a full disk
    /// once, and again after each removal that did not free enough space.
    fn store(&mut self, handle: u64, size: u64, write: impl Fn(&mut OpenFiles) -> io::Result<()>) -> bool {
        let (mut was_full, mut is_told) = (false, false);
        let is_stored = loop {
            let Some(result) = self.write(handle, size, &write) else { return false };
            let Err(error) = result else { break true };
            let can_change = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            if !is_told {
                self.tell(handle, JobResult::Full(Some(error.to_string())));
                was_full = true;
            }
            if !can_change || self.shared.drops(handle) {
                break false;
            }
            is_told = !self.wait_for_room();
        };
        if was_full {
            self.tell(handle, JobResult::Full(None));
        }
        is_stored
    }
}
