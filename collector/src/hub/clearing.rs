//! Removal of the directories of cleared chunks.

use super::Hub;
use crate::storage::Job;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Pause after a failed removal.
const RETRY: Duration = Duration::from_secs(60);

/// Directories to be removed, including those of ended sessions.
#[derive(Debug, Default)]
pub(super) struct RemovalQueue {
    /// Directories, and the time of the next attempt after a failure.
    waiting: Vec<(PathBuf, Option<Instant>)>,
    /// Directories that the storage is removing, by job number.
    leaving: HashMap<u64, PathBuf>,
}

impl Hub {
    pub(crate) fn clear(&mut self, directories: Vec<PathBuf>, now: Instant) {
        self.clearing.waiting.extend(directories.into_iter().map(|directory| (directory, None)));
        self.remove_cleared(now);
    }

    /// Removes cleared directories, except those into which streams still write because no packet of the next chunk has arrived.
    pub(super) fn remove_cleared(&mut self, now: Instant) {
        if self.clearing.waiting.is_empty() {
            return;
        }
        let streams = || self.streams.values().filter(|stream| stream.is_open());
        let waits = |(directory, due): &(PathBuf, Option<Instant>)| {
            due.is_some_and(|due| now < due) || streams().any(|stream| stream.place.directory.starts_with(directory))
        };
        let (waiting, free) = std::mem::take(&mut self.clearing.waiting).into_iter().partition::<Vec<_>, _>(waits);
        self.clearing.waiting = waiting;
        for (directory, _) in free {
            // A number that no stream has.
            self.last_stream += 1;
            self.clearing.leaving.insert(self.last_stream, directory.clone());
            self.storage.give(self.last_stream, Job::Remove { directory, bytes: 0 });
        }
    }

    /// Handles the end of a removal. Returns whether it will be retried, or `None` if the job was another kind of removal.
    pub(super) fn cleared(&mut self, job: u64, is_done: bool, now: Instant) -> Option<bool> {
        let directory = self.clearing.leaving.remove(&job)?;
        if !is_done {
            self.clearing.waiting.push((directory, Some(now + RETRY)));
        }
        Some(!is_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{JobResult, Storage};
    use tracepoint_wire::relay::METADATA_CHANNEL;

    #[test]
    fn what_cannot_be_removed_is_tried_again() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::TempDir::new_in("/dev/shm")?;
        let (sender, mut done) = tokio::sync::mpsc::unbounded_channel();
        let mut hub = Hub::new(place.path().to_owned(), Storage::start(0, None, None, sender)?);
        let (cleared, mut now) = (place.path().join("cleared"), Instant::now());
        let obstacle = cleared.join(METADATA_CHANNEL);
        std::fs::create_dir_all(&obstacle)?;
        hub.clear(vec![cleared.clone()], now);
        for is_removed in [false, true] {
            let (job, result) = done.blocking_recv().ok_or("the storage goes on")?;
            assert!(
                matches!(&result, JobResult::Removed { failed, .. } if failed.is_none() == is_removed),
                "{result:?}"
            );
            hub.done(job, result, now);
            assert_eq!(cleared.exists(), !is_removed);
            if !is_removed {
                let said = hub.messages().concat();
                assert!(said.ends_with("it is tried again in a minute"), "{said}");
                std::fs::remove_dir(&obstacle)?;
            }
            now += RETRY;
            hub.tick(now);
        }
        assert!(hub.clearing.waiting.is_empty() && hub.clearing.leaving.is_empty());
        Ok(())
    }
}
