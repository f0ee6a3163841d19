//! Tells how far a recovery is.

use super::Progress;

/// Counts bytes for whoever wants to know.
pub(super) struct Meter<'a> {
    report: &'a mut dyn FnMut(Progress),
    now: Progress,
    /// Where the part ends that is being looked at.
    part: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(report: &'a mut dyn FnMut(Progress), process: usize, processes: usize) -> Self {
        Self { report, now: Progress { process, processes, done: 0, total: 0 }, part: 0 }
    }

    /// All that is to be looked at.
    pub(super) fn expect(&mut self, total: u64) {
        self.now.total = total;
        (self.report)(self.now);
    }

    /// Of that, the next `bytes`.
    pub(super) fn part(&mut self, bytes: u64) {
        self.now.done = self.part;
        self.part = self.part.saturating_add(bytes).min(self.now.total);
        (self.report)(self.now);
    }

    /// So many bytes of the part have been looked at.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.now.done = self.now.done.saturating_add(bytes as u64).min(self.part);
        (self.report)(self.now);
    }

    /// All of it.
    pub(super) fn end(&mut self) {
        self.now.done = self.now.total;
        (self.report)(self.now);
    }
}
