//! When a trace is rotated to the next chunk, and which chunks are retained.

use super::accounting::Content;
use crate::account::{Chunk, RemovedChunks};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Pause before a failed rotation is retried.
const AGAIN: Duration = Duration::from_secs(1);

/// The settings and the chunks of a trace.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Size in bytes at which a chunk is closed.
    pub(super) size: Option<u64>,
    /// Age at which a chunk is closed.
    pub(super) every: Option<Duration>,
    /// Number of chunks to retain.
    pub(super) keep: Option<usize>,
    /// The number of the current chunk; 0 if the trace is not in chunks.
    pub(super) number: u64,
    /// When the current chunk began.
    began: Option<Instant>,
    failed: Option<Instant>,
    /// Earlier chunks that are retained, oldest first.
    closed: VecDeque<(u64, Content)>,
    removed: RemovedChunks,
}

impl Chunks {
    /// Returns whether rotation by size or time is configured.
    pub(super) const fn is_asked_for(&self) -> bool {
        self.size.is_some() || self.every.is_some()
    }

    /// Returns whether a rotation by size or time is due.
    pub(super) fn is_due(&self, content: Content) -> bool {
        let due = self.size.is_some_and(|size| content.bytes >= size)
            || self.every.zip(self.began).is_some_and(|(every, began)| began.elapsed() >= every);
        due && content.packets > 0 && self.failed.is_none_or(|failed| failed.elapsed() >= AGAIN)
    }

    /// Begins a chunk; `before` is the content of the previous one.
    pub(super) fn begin(&mut self, number: u64, before: Option<Content>) {
        if let Some(content) = before {
            self.closed.push_back((self.number, content));
        }
        (self.number, self.began, self.failed) = (number, Some(Instant::now()), None);
    }

    /// Records a failed rotation.
    pub(super) fn fail(&mut self) {
        self.failed = Some(Instant::now());
    }

    /// Returns the oldest chunk before the current one.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.closed.front().map(|(number, _)| *number)
    }

    /// Returns the oldest chunk if there are more than are to be retained.
    pub(super) fn excess(&self) -> Option<u64> {
        let keep = self.keep?;
        self.oldest().filter(|_| self.closed.len() + 1 > keep.max(1))
    }

    /// Records the removal of the oldest chunk.
    pub(super) fn remove(&mut self) {
        if let Some((_, content)) = self.closed.pop_front() {
            self.removed.chunks += 1;
            self.removed.packets += content.packets;
            self.removed.events += content.events;
            self.removed.bytes += content.bytes;
        }
    }

    /// Returns the number of packet bytes in the retained chunks before the current one.
    pub(super) fn closed_bytes(&self) -> u64 {
        self.closed.iter().map(|(_, content)| content.bytes).sum()
    }

    /// Returns the entry of the current chunk in its account.
    pub(super) fn chunk(&self, last: bool) -> Chunk {
        let mut chunk = Chunk::default();
        (chunk.number, chunk.last, chunk.removed) = (self.number, last, self.removed);
        chunk
    }
}
