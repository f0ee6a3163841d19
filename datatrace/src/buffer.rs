//! The buffer of a trace object (the original's `buffer`, `current` and `last`): one slot as it will be in the file.

/// Copies into the page cache are about twice as fast if source and destination have the same distance from a multiple of this.
const ALIGNMENT: usize = 64;

/// A slot's bytes in memory, aligned as in the file. It is never full between calls.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    /// Offsets in `memory`: start of the slot, place of its next entry, end of the slot.
    start: usize,
    next: usize,
    end: usize,
    frame: usize,
    logsize: usize,
}

impl Buffer {
    /// An empty buffer, whose slot will be at `offset` of the file.
    pub(crate) fn new(logsize: usize, frame: usize, offset: u64) -> Self {
        let memory = vec![0; logsize + ALIGNMENT].into_boxed_slice();
        let mut buffer = Self { memory, start: 0, next: 0, end: 0, frame, logsize };
        buffer.clear(offset);
        buffer
    }

    /// Empties the buffer for the slot at `offset` of the file.
    pub(crate) fn clear(&mut self, offset: u64) {
        let wanted = (offset % ALIGNMENT as u64) as usize;
        let is = self.memory.as_ptr().addr() % ALIGNMENT;
        self.start = (ALIGNMENT + wanted - is) % ALIGNMENT;
        self.next = self.start + self.frame;
        self.end = self.start + self.logsize;
    }

    /// Reserves the bytes of the next entry; `None` if they would fill the buffer, or do not fit.
    #[inline(always)]
    pub(crate) fn take(&mut self, length: usize) -> Option<&mut [u8]> {
        let from = self.next;
        if length >= self.end - from {
            return None;
        }
        self.next = from + length;
        Some(&mut self.memory[from..from + length])
    }

    /// Appends the bytes that fill it, [`Self::remaining`] of them.
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        self.memory[self.next..self.end].copy_from_slice(bytes);
        self.next = self.end;
    }

    /// Removes the entries' bytes after the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.next = self.start + self.frame + length;
    }

    /// Bytes of a slot available for entries.
    pub(crate) fn capacity(&self) -> usize {
        self.logsize - self.frame
    }

    /// Bytes left for entries.
    pub(crate) fn remaining(&self) -> usize {
        self.end - self.next
    }

    /// Bytes of the entries in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.next - self.start - self.frame
    }

    /// The whole slot, with space for its frame, and the number of used bytes.
    pub(crate) fn slot_mut(&mut self) -> (&mut [u8], usize) {
        (&mut self.memory[self.start..self.end], self.next - self.start)
    }
}
