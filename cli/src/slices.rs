//! Equal slices of a time range.

#[derive(Clone, Copy)]
pub(crate) struct Slices {
    begin: i64,
    width: u64,
    count: usize,
}

impl Slices {
    pub(crate) fn new((begin, end): (i64, i64), count: usize) -> Self {
        Self { begin, width: end.abs_diff(begin) / count as u64 + 1, count }
    }

    /// The index of the slice that contains `time`; the nearest slice if it is out of range.
    pub(crate) fn index(&self, time: i64) -> usize {
        let since = if time < self.begin { 0 } else { time.abs_diff(self.begin) };
        usize::try_from(since / self.width).unwrap_or(usize::MAX).min(self.count - 1)
    }
}
