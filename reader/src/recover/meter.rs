//! Reports the progress of a recovery.

use super::Progress;

/// Counts bytes, and reports them.
pub(super) struct Meter<'a> {
    report: &'a mut dyn FnMut(Progress),
    now: Progress,
    /// The end of the current part.
    part: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(report: &'a mut dyn FnMut(Progress), process: usize, processes: usize) -> Self {
        Self { report, now: Progress { process, processes, done: 0, total: 0 }, part: 0 }
    }

    /// Sets the total number of bytes.
    pub(super) fn expect(&mut self, total: u64) {
        self.now.total = total;
        (self.report)(self.now);
    }

    /// Begins a part of `bytes` bytes.
    pub(super) fn part(&mut self, bytes: u64) {
        self.now.done = self.part;
        self.part = self.part.saturating_add(bytes).min(self.now.total);
        (self.report)(self.now);
    }

    /// Adds bytes read from the part.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.now.done = self.now.done.saturating_add(bytes as u64).min(self.part);
        (self.report)(self.now);
    }

    /// Reports the end.
    pub(super) fn end(&mut self) {
        self.now.done = self.now.total;
        (self.report)(self.now);
    }
}
