//! A bounded sample of many items, taken evenly from cells, such as slices of a thread's time.
//!
//! Each cell keeps its items of highest priority, up to a quota. The quota is the same for all cells, and as large as the total bound
//! allows. Items are offered one by one; the quota falls as cells fill, and items below it are dropped at once. Except for items of equal priority,
//! the result does not depend on the order of the items.

use std::collections::HashMap;

pub(super) struct Sample<T> {
    cells: HashMap<usize, Cell<T>>,
    len: usize,
    most: usize,
    pub(super) offered: u64,
}

struct Cell<T> {
    /// The highest priority that was dropped.
    floor: Option<u64>,
    kept: Vec<(u64, T)>,
}

impl<T> Sample<T> {
    /// `most`: maximum number of items kept. The number of cells must not exceed it.
    pub(super) fn new(most: usize) -> Self {
        Self { cells: HashMap::new(), len: 0, most, offered: 0 }
    }

    /// Offers an item, which is constructed only if it may be kept. Amortised constant time.
    pub(super) fn offer(&mut self, cell: usize, priority: u64, item: impl FnOnce() -> T) {
        self.offered += 1;
        let cell = self.cells.entry(cell).or_insert(Cell { floor: None, kept: Vec::new() });
        if cell.floor.is_none_or(|floor| priority > floor) {
            cell.kept.push((priority, item()));
            self.len += 1;
            if self.len >= 2 * self.most {
                self.prune();
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<T> {
        self.prune();
        self.cells.into_values().flat_map(|cell| cell.kept.into_iter().map(|(_, item)| item)).collect()
    }

    /// Drops the items that exceed the largest quota allowed by the bound.
    fn prune(&mut self) {
        let lengths: Vec<_> = self.cells.values().map(|cell| cell.kept.len()).collect();
        let kept = |quota: usize| lengths.iter().map(|length| *length.min(&quota)).sum::<usize>();
        let (mut fits, mut exceeds) = (0, self.len + 1);
        while exceeds - fits > 1 {
            let quota = usize::midpoint(fits, exceeds);
            *(if kept(quota) <= self.most { &mut fits } else { &mut exceeds }) = quota;
        }
        for cell in self.cells.values_mut().filter(|cell| cell.kept.len() > fits) {
            cell.kept.sort_by(|(one, _), (other, _)| other.cmp(one));
            cell.floor = Some(cell.kept[fits].0);
            cell.kept.truncate(fits);
        }
        self.len = kept(fits);
    }
}

/// A pseudo-random priority that is independent of the number's magnitude: the finaliser of `SplitMix64`.
pub(super) fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_keeps_its_highest_as_far_as_there_is_room() {
        let mut sample = Sample::new(100);
        for n in 0..100_000_u64 {
            // Cell 0 has 5 items, cell 1 a million in any order, the others a thousand each.
            let cell = if n % 20_000 == 0 {
                0
            } else if n % 10 < 9 {
                1
            } else {
                2 + (n / 1000) as usize % 4
            };
            sample.offer(cell, scattered(n), || (cell, scattered(n)));
        }
        assert_eq!(sample.offered, 100_000);
        let kept = sample.finish();
        let of = |cell: usize| kept.iter().filter(|item| item.0 == cell).map(|item| item.1).collect::<Vec<_>>();
        assert_eq!(of(0).len(), 5, "all of a rare kind");
        // (100 - 5) / 5 of each of the others.
        (1..6).for_each(|cell| assert_eq!(of(cell).len(), 19, "cell {cell}"));
        let mut highest: Vec<_> = (0..100_000).filter(|n| n % 20_000 != 0 && n % 10 < 9).map(scattered).collect();
        highest.sort_unstable_by(|one, other| other.cmp(one));
        let mut found = of(1);
        found.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(found, highest[..19], "those of the highest priority");
    }

    #[test]
    fn few_items_are_all_kept() {
        let mut sample = Sample::new(100);
        (0..100).for_each(|n| sample.offer(n % 3, 7, || n));
        assert_eq!(sample.finish().len(), 100);
    }
}
