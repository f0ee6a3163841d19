//! When a trace is rotated into the next chunk, and which chunks are retained.

use super::accounting::Content;
use crate::account::{Chunk, Removed};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The pause before a failed rotation is tried again by itself.
const AGAIN: Duration = Duration::from_secs(1);

/// The chunks of a trace: the settings, and the chunks so far.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// The size in bytes at which a chunk is closed.
    pub(super) size: Option<u64>,
    /// The age at which a chunk is closed.
    pub(super) every: Option<Duration>,
    /// How many chunks are retained.
    pub(super) keep: Option<usize>,
    /// The number of the present chunk; 0 if the trace is not in chunks.
    pub(super) number: u64,
    /// When it began.
    began: Option<Instant>,
    failed: Option<Instant>,
    /// The chunks before it that are retained, oldest first.
    closed: VecDeque<(u64, Content)>,
    removed: Removed,
}

impl Chunks {
    /// Whether the trace is rotated by size or time.
    pub(super) const fn is_asked_for(&self) -> bool {
        self.size.is_some() || self.every.is_some()
    }

    /// Whether a rotation by size or time is due.
    pub(super) fn is_due(&self, content: Content) -> bool {
        let due = self.size.is_some_and(|size| content.bytes >= size)
            || self.every.zip(self.began).is_some_and(|(every, began)| began.elapsed() >= every);
        due && content.packets > 0 && self.failed.is_none_or(|failed| failed.elapsed() >= AGAIN)
    }

    /// A chunk begins; `before` is the content of the previous one.
    pub(super) fn begin(&mut self, number: u64, before: Option<Content>) {
        if let Some(content) = before {
            self.closed.push_back((self.number, content));
        }
        (self.number, self.began, self.failed) = (number, Some(Instant::now()), None);
    }

    /// A rotation failed.
    pub(super) fn fail(&mut self) {
        self.failed = Some(Instant::now());
    }

    /// The oldest of the chunks before the present one.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.closed.front().map(|(number, _)| *number)
    }

    /// The same, if there are more chunks than are retained.
    pub(super) fn excess(&self) -> Option<u64> {
        let keep = self.keep?;
        self.oldest().filter(|_| self.closed.len() + 1 > keep.max(1))
    }

    /// The oldest chunk was removed.
    pub(super) fn remove(&mut self) {
        if let Some((_, content)) = self.closed.pop_front() {
            self.removed.chunks += 1;
            self.removed.packets += content.packets;
            self.removed.events += content.events;
            self.removed.bytes += content.bytes;
        }
    }

    /// The bytes of packets in the retained chunks before the present one.
    pub(super) fn closed_bytes(&self) -> u64 {
        self.closed.iter().map(|(_, content)| content.bytes).sum()
    }

    /// The entry of the present chunk in its account.
    pub(super) fn chunk(&self, last: bool) -> Chunk {
        let mut chunk = Chunk::default();
        (chunk.number, chunk.last, chunk.removed) = (self.number, last, self.removed);
        chunk
    }
}
