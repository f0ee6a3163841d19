//! The thread that writes.

use super::Shared;
use crate::storage::file::{Files, OpenFiles, bytes_below};
use crate::storage::{Done, Job, Numbered};
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
use tracepoint_reader::net::relay::METADATA_CHANNEL;

/// The time between two attempts to write to a full disk.
const RETRY: Duration = Duration::from_millis(500);
/// Packets of a stream that wait one behind the other are written together, up to so many and so many bytes.
const MOST_TOGETHER: usize = 64;
const BYTES_TOGETHER: u64 = 256 << 10;
/// The pace of the disk is that of so many bytes, or of so much time.
const PACE_BYTES: u64 = 1 << 20;
const PACE_TIME: Duration = Duration::from_millis(100);

/// What the thread has.
pub(super) struct Writer {
    pub(super) jobs: Receiver<(u64, Job)>,
    /// Jobs that came while a packet waited for room.
    pub(super) later: VecDeque<(u64, Job)>,
    pub(super) streams: HashMap<u64, OpenFiles>,
    pub(super) shared: Arc<Shared>,
    pub(super) quota: Option<u64>,
    pub(super) rate: Option<u64>,
    /// Until when a disk of this rate has work.
    pub(super) busy: Instant,
    /// The time that removals took during the present job.
    pub(super) removing: Duration,
    pub(super) done: UnboundedSender<(u64, Done)>,
}

impl Writer {
    pub(super) fn run(mut self) {
        let (mut bytes, mut busy) = (0, Duration::ZERO);
        while let Some((handle, job)) = self.later.pop_front().or_else(|| self.jobs.recv().ok()) {
            let begin = Instant::now();
            let size = self.work(handle, job);
            self.shared.waiting.fetch_sub(size, Ordering::Relaxed);
            // A removal says nothing about the speed of writing, also where packets of one batch are before and behind it.
            (bytes, busy) = (bytes + size, busy + begin.elapsed().saturating_sub(mem::take(&mut self.removing)));
            if bytes >= PACE_BYTES || busy >= PACE_TIME && bytes > 0 {
                let pace = busy.as_nanos() as u64 * (1 << 20) / bytes;
                // Half of it is what was before.
                self.shared.pace.store(self.shared.pace.load(Ordering::Relaxed).midpoint(pace), Ordering::Relaxed);
                (bytes, busy) = (0, Duration::ZERO);
            }
        }
    }

    fn tell(&self, handle: u64, done: Done) {
        // The state machine ends before this thread.
        let _ = self.done.send((handle, done));
    }

    /// Does a job, and tells that; how many bytes were to be written.
    fn work(&mut self, handle: u64, job: Job) -> u64 {
        let size = job.size();
        let done = match job {
            Job::Open { files, from } => self.open(handle, files, from),
            Job::Packet(first) => return self.packets(handle, first),
            Job::Metadata { packet } => {
                let packet = Numbered { sequence: 0, packet, index: None };
                let is_stored = self.store(handle, size, |files| files.packets(from_ref(&packet)));
                is_stored.then_some(Done::Metadata { bytes: size })
            }
            Job::Beacon { time } => Some(Done::Beacon { time }),
            Job::Mark => Some(Done::Marked),
            Job::Release { upto } => Some(Done::Released { upto }),
            Job::Unindex => {
                self.streams.get_mut(&handle).into_iter().for_each(OpenFiles::unindex);
                None
            }
            Job::Remove { directory, bytes } => Some(self.remove(&directory, bytes)),
            Job::Close => {
                self.streams.remove(&handle);
                Some(Done::Closed)
            }
        };
        if let Some(done) = done {
            self.tell(handle, done);
        }
        size
    }

    fn open(&mut self, handle: u64, files: Files, from: Option<u64>) -> Option<Done> {
        let mut new = OpenFiles::new(files);
        let Some(mut old) = self.streams.remove(&handle) else {
            self.streams.insert(handle, new);
            return None;
        };
        let moved = match from.map(|from| new.take_tail(&mut old, from)) {
            None => 0,
            Some(Ok(moved)) => moved,
            Some(Err(error)) => {
                self.tell(handle, Done::Full(Some(error.to_string())));
                0
            }
        };
        self.streams.insert(handle, new);
        Some(Done::Opened { entries: old.entries, bytes: old.bytes, moved })
    }

    /// Writes a packet, and those of the same stream that wait behind it: together if there is room for all. Their bytes.
    fn packets(&mut self, handle: u64, first: Numbered) -> u64 {
        let (mut size, mut packets) = (first.packet.size(), vec![first]);
        while packets.len() < MOST_TOGETHER {
            match self.later.pop_front().or_else(|| self.jobs.try_recv().ok()) {
                Some((of, Job::Packet(next))) if of == handle && size + next.packet.size() <= BYTES_TOGETHER => {
                    size += next.packet.size();
                    packets.push(next);
                }
                // No removal waits behind a packet.
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
            // The share of the memory is free before the state machine knows, so that waiting packets come in.
            drop(it);
            self.tell(handle, Done::Packet { sequence, size: is_stored.then_some(bytes), stream_class });
        }
        size
    }

    /// Removes a trace, its metadata first.
    fn remove(&mut self, directory: &Path, bytes: u64) -> Done {
        let begin = Instant::now();
        let size = bytes_below(directory);
        let metadata = match fs::remove_file(directory.join(METADATA_CHANNEL)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let is_gone = metadata.is_ok();
        let failed = metadata.and_then(|()| fs::remove_dir_all(directory)).err();
        self.shared.resized(0, size.saturating_sub(failed.as_ref().map_or(0, |_| bytes_below(directory))));
        let failed = failed.map(|error| {
            let again = if is_gone { "" } else { "; it is tried again in a minute" };
            format!("cannot remove {}: {error}{again}", directory.display())
        });
        self.removing += begin.elapsed();
        Done::Removed { bytes, is_gone, failed }
    }

    /// Waits before another attempt to write to a full disk, until something is removed; whether it was. Other jobs are done later.
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

    /// Waits as long as a disk of the rate takes for so many bytes more.
    fn slow_down(&mut self, size: u64) {
        if let Some(rate) = self.rate {
            self.busy = self.busy.max(Instant::now()) + Duration::from_nanos(size * 1_000_000_000 / rate);
            std::thread::sleep(self.busy.saturating_duration_since(Instant::now()));
        }
    }

    /// Writes `size` bytes, if the quota allows; `None`: the stream has no files.
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

    /// The same; waits while the disk is full or the quota is used up, because that can change. Any other error loses the bytes. That the
    /// disk is full is told once, and once more after each removal that has not made room enough.
    fn store(&mut self, handle: u64, size: u64, write: impl Fn(&mut OpenFiles) -> io::Result<()>) -> bool {
        let (mut was_full, mut is_told) = (false, false);
        let is_stored = loop {
            let Some(result) = self.write(handle, size, &write) else { return false };
            let Err(error) = result else { break true };
            let can_change = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            if !is_told {
                self.tell(handle, Done::Full(Some(error.to_string())));
                was_full = true;
            }
            if !can_change || self.shared.gives_up.load(Ordering::Relaxed) {
                break false;
            }
            is_told = !self.wait_for_room();
        };
        if was_full {
            self.tell(handle, Done::Full(None));
        }
        is_stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Packet, Storage};
    use tokio::sync::mpsc::unbounded_channel;
    use tracepoint_reader::net::relay::{Index, IndexFile};

    #[test]
    fn packets_that_wait_together_are_stored_as_far_as_there_is_room() {
        let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
        let (sender, mut done) = unbounded_channel();
        // A packet holds the thread up until the others wait behind it.
        let storage = Storage::start(0, Some(4500), Some(10_000), sender).expect("a thread");
        let index = |number: u8| Index { packet_number: number.into(), ..Index::default() };
        let packet = |number: u8| {
            let padding = u32::from(number) * 100;
            let packet = Packet::new(vec![number; 1000 - padding as usize], padding, None);
            Job::Packet(Numbered { sequence: number.into(), packet, index: Some(index(number)) })
        };
        let answer = |sequence, size| Some((7, Done::Packet { sequence, size, stream_class: Some(0) }));
        let path = place.path().join("stream");
        let files = Files::create(&path, IndexFile { is_long: true }, true).expect("files");
        let segment = files.segment();
        storage.give(7, Job::Open { files, from: None });
        (0..3).for_each(|number| storage.give(7, packet(number)));
        (0..3).for_each(|sequence| assert_eq!(done.blocking_recv(), answer(sequence, Some(1000))));
        (3..6).for_each(|number| storage.give(7, packet(number)));
        assert_eq!(done.blocking_recv(), answer(3, Some(1000)));
        assert!(matches!(done.blocking_recv(), Some((7, Done::Full(Some(_))))));
        storage.give_up();
        assert_eq!(done.blocking_recv(), Some((7, Done::Full(None))));
        assert_eq!(done.blocking_recv(), answer(4, None));
        let bytes = fs::read(&path).expect("a file");
        assert_eq!(bytes.len(), 4000);
        for number in 0..4_u8 {
            let (offset, entry) = segment.entry(number.into()).expect("an entry");
            assert_eq!((offset, entry.packet_number), (u64::from(number) * 1000, number.into()));
            let content = 1000 - usize::from(number) * 100;
            let expected = [vec![number; content], vec![0; 1000 - content]].concat();
            assert_eq!(bytes[offset as usize..][..1000], expected);
        }
        assert!(segment.entry(4).is_err());
    }

    #[test]
    fn a_removal_does_not_wait_behind_the_packet_that_needs_its_room() {
        let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
        let old = place.path().join("old");
        fs::create_dir(&old).and_then(|()| fs::write(old.join(METADATA_CHANNEL), [1; 60])).expect("a file");
        let (sender, mut done) = unbounded_channel();
        let storage = Storage::start(60, Some(100), None, sender).expect("a thread");
        let packet = |sequence, size| {
            Job::Packet(Numbered { sequence, packet: Packet::new(vec![7; size], 0, None), index: None })
        };
        let path = place.path().join("stream");
        let files = Files::create(&path, IndexFile { is_long: true }, false).expect("a file");
        let stored = |sequence, size| Done::Packet { sequence, size: Some(size), stream_class: None };
        storage.give(7, Job::Open { files, from: None });
        for (sequence, size) in [(0, 50), (1, 1)] {
            storage.give(7, packet(sequence, size));
        }
        assert!(matches!(done.blocking_recv(), Some((7, Done::Full(Some(_))))));
        storage.give(1, Job::Remove { directory: old.clone(), bytes: 50 });
        assert_eq!(done.blocking_recv(), Some((1, Done::Removed { bytes: 50, is_gone: true, failed: None })));
        for expected in [Done::Full(None), stored(0, 50), stored(1, 1)] {
            assert_eq!(done.blocking_recv(), Some((7, expected)));
        }
        assert_eq!((storage.used(), old.exists()), (51, false));
        // There is nothing to remove; and metadata that cannot be, without which the rest stays.
        for is_gone in [true, false] {
            storage.give(1, Job::Remove { directory: old.clone(), bytes: 50 });
            let removed = done.blocking_recv().expect("an answer").1;
            assert!(
                matches!(removed, Done::Removed { failed: Some(_), is_gone: gone, .. } if gone == is_gone),
                "{removed:?}"
            );
            fs::create_dir_all(old.join(METADATA_CHANNEL)).expect("a directory");
        }
        assert_eq!(storage.used(), 51);
    }

    #[test]
    fn a_removal_within_a_batch_is_measured_apart() {
        let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
        let old = place.path().join("old");
        fs::create_dir(&old).and_then(|()| fs::write(old.join(METADATA_CHANNEL), [1; 60])).expect("a file");
        let packet =
            |sequence| Job::Packet(Numbered { sequence, packet: Packet::new(vec![7; 10], 0, None), index: None });
        let ((jobs, receiver), (done, _answers)) = (std::sync::mpsc::channel(), unbounded_channel());
        let mut writer = Writer {
            jobs: receiver,
            later: VecDeque::new(),
            streams: HashMap::new(),
            shared: Arc::default(),
            quota: None,
            rate: None,
            busy: Instant::now(),
            removing: Duration::ZERO,
            done,
        };
        let path = place.path().join("stream");
        let files = Files::create(&path, IndexFile { is_long: true }, false).expect("a file");
        writer.work(7, Job::Open { files, from: None });
        assert_eq!((writer.work(7, packet(0)), writer.removing), (10, Duration::ZERO));
        for job in [Job::Remove { directory: old.clone(), bytes: 60 }, packet(2)] {
            jobs.send((7, job)).expect("the writer has the receiver");
        }
        assert_eq!((writer.work(7, packet(1)), old.exists()), (20, false), "one batch, and a removal in it");
        assert!(writer.removing > Duration::ZERO);
    }
}
