//! The numbers that were reported as missing.

use std::collections::BTreeMap;

/// Maximum number of gaps that are remembered; the newest ones are kept.
const MAX_GAPS: usize = 4096;

/// Gaps: the first number of each, indexed by the number after its last one.
#[derive(Debug, Default)]
pub(super) struct Gaps(BTreeMap<u64, u64>);

impl Gaps {
    /// Adds the numbers from `first` to `end`, which is excluded. Gaps are added in ascending order.
    pub(super) fn add(&mut self, first: u64, end: u64) {
        if first < end {
            self.0.insert(end, first);
            if self.0.len() > MAX_GAPS {
                self.0.pop_first();
            }
        }
    }

    /// Removes `number`, and returns whether it was missing.
    pub(super) fn take(&mut self, number: u64) -> bool {
        let Some((&end, &first)) = self.0.range(number + 1..).next() else { return false };
        if first > number {
            return false;
        }
        self.0.remove(&end);
        // The rest of the gap on both sides of the number.
        self.add(first, number);
        self.add(number + 1, end);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_number_is_reported_once() {
        let mut missing = Gaps::default();
        missing.add(3, 6);
        missing.add(8, 9);
        for (number, was) in
            [(2, false), (4, true), (4, false), (3, true), (5, true), (6, false), (8, true), (8, false)]
        {
            assert_eq!(missing.take(number), was, "{number}");
        }
        assert!(missing.0.is_empty());
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut missing = Gaps::default();
        (0..=MAX_GAPS as u64).for_each(|gap| missing.add(gap * 2, gap * 2 + 1));
        assert!(!missing.take(0));
        assert!(missing.take(2));
    }
}
