//! Kept values: the last ones, and the most frequent ones.
//!
//! **Last**: a ring of entries. An event takes the next number of the ring, and owns the entry with that number by means of a sequence word, which is
//! odd meanwhile. Afterwards the word is twice the number plus two. An event whose entry is owned by another event is skipped.
//!
//! **Top**: the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, 2005). The count of a value in the table is incremented. A new value
//! replaces the value with the smallest count, starts with that count, and records it as its error. The count of a value is too large by at most its
//! error. The table is set-associative: a value competes only with the [`WAYS`] values of its set, which the error bound takes into account. Changing
//! a cell's table requires a lock that is only tried: an event that finds it held (by another thread in the shared cell, or by the event that a
//! signal handler interrupts) is skipped, and counted as skipped.

use crate::key::{GroupKey, Key};
use crate::layout::{LAST_WORDS, Layout, TOP_WORDS, WAYS, counter};
use crate::memory::{Cell, load};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Keeps a value as the last one; returns `false` if it is skipped.
pub(crate) fn last(cell: Cell<'_>, layout: &Layout, time: u64, key: &Key<'_>) -> bool {
    let row = cell.from(layout.row(Some(0)));
    let number = row[0].fetch_add(1, Ordering::Relaxed);
    let at = 1 + (number % layout.entries() as u64) as usize * LAST_WORDS;
    let entry = &row[at..at + LAST_WORDS];
    let sequence = entry[0].load(Ordering::Relaxed);
    let is_free = sequence & 1 == 0
        && entry[0].compare_exchange(sequence, sequence | 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if !is_free {
        return false;
    }
    // Q1: pairs with the Acquire fence in `last_values`: a reader that sees a value stored after the fence sees the odd number.
    fence(Ordering::Release);
    entry[1].store(time, Ordering::Relaxed);
    key.store(&entry[2..]);
    // Q2: Release pairs with the Acquire load in `last_values`.
    entry[0].store((number + 1) << 1, Ordering::Release);
    true
}

/// The values of a cell with their times.
pub(crate) fn last_values(cell: &[AtomicU64], layout: &Layout) -> Vec<(u64, GroupKey)> {
    let row = &cell[layout.row(Some(0)) + 1..];
    let entry = |entry: &[AtomicU64]| {
        let before = entry[0].load(Ordering::Acquire); // Q2
        let value = (load(entry, 1), GroupKey::load(&entry[2..])?);
        fence(Ordering::Acquire); // Q1
        (before != 0 && before & 1 == 0 && entry[0].load(Ordering::Relaxed) == before).then_some(value)
    };
    row.chunks_exact(LAST_WORDS).take(layout.entries()).filter_map(entry).collect()
}

/// Counts a value among the most frequent ones; returns `false` if it is skipped.
pub(crate) fn top(cell: Cell<'_>, layout: &Layout, identity: u64, key: &Key<'_>) -> bool {
    let lock = cell.word(counter::LOCK);
    let version = lock.load(Ordering::Relaxed);
    // R1: Acquire pairs with the Release store below.
    let is_free =
        version & 1 == 0 && lock.compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if !is_free {
        return false;
    }
    fence(Ordering::Release); // R2: pairs with the Acquire fence in `copy`.
    count(top_set(cell.from(layout.row(Some(0))), layout, identity), identity, key);
    lock.store(version + 2, Ordering::Release); // R1
    true
}

fn top_set<'a>(row: &'a [AtomicU64], layout: &Layout, identity: u64) -> &'a [AtomicU64] {
    let sets = layout.entries() / WAYS;
    let set = ((u128::from(identity) * sets as u128) >> 64) as usize;
    &row[set * WAYS * TOP_WORDS..(set + 1) * WAYS * TOP_WORDS]
}

/// Counts the value in its set. The caller holds the lock.
fn count(set: &[AtomicU64], identity: u64, key: &Key<'_>) {
    let mut smallest = &set[..TOP_WORDS];
    for entry in set.chunks_exact(TOP_WORDS) {
        if load(entry, 0) == identity {
            return entry[1].store(load(entry, 1) + 1, Ordering::Relaxed);
        }
        // A free entry has the count 0.
        if load(entry, 1) < load(smallest, 1) {
            smallest = entry;
        }
    }
    let error = load(smallest, 1);
    smallest[0].store(identity, Ordering::Relaxed);
    smallest[1].store(error + 1, Ordering::Relaxed);
    smallest[2].store(error, Ordering::Relaxed);
    key.store(&smallest[3..]);
}

/// A frequent value.
#[derive(Debug)]
pub(crate) struct Frequent {
    pub(crate) key: GroupKey,
    pub(crate) count: u64,
    pub(crate) error: u64,
}

/// A consistent copy of a cell's table, unless its owner was killed while it changed it.
fn copy(cell: &[AtomicU64], layout: &Layout) -> Box<[AtomicU64]> {
    let row = &cell[layout.row(Some(0))..][..layout.entries() * TOP_WORDS];
    let copy_once =
        || -> Box<[AtomicU64]> { row.iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect() };
    for _ in 0..1000 {
        let version = cell[counter::LOCK].load(Ordering::Acquire); // R1
        let copied = copy_once();
        fence(Ordering::Acquire); // R2
        if version & 1 == 0 && cell[counter::LOCK].load(Ordering::Relaxed) == version {
            return copied;
        }
        std::thread::yield_now();
    }
    copy_once()
}

/// The frequent values of all cells combined. A value missing in a cell's full set may have been counted there as often as the smallest count in that
/// set; that count is added to its count and to its error, as for mergeable summaries (Agarwal and others, 2013).
pub(crate) fn top_values<'a>(cells: impl Iterator<Item = &'a [AtomicU64]>, layout: &Layout) -> Vec<Frequent> {
    let copies: Vec<_> = cells.map(|cell| copy(cell, layout)).collect();
    // Sort by all bytes, so that corrupted memory still gives a stable order.
    let mut values: BTreeMap<u64, Frequent> = BTreeMap::new();
    let entries = || copies.iter().flat_map(|row| row.chunks_exact(TOP_WORDS)).filter(|entry| load(entry, 1) > 0);
    for entry in entries() {
        if let Some(key) = GroupKey::load(&entry[3..]) {
            values.entry(load(entry, 0)).or_insert(Frequent { key, count: 0, error: 0 });
        }
    }
    for (identity, value) in &mut values {
        for row in &copies {
            let set = || top_set(row, layout, *identity).chunks_exact(TOP_WORDS);
            let smallest = || set().map(|entry| load(entry, 1)).min().unwrap_or(0);
            let own = set().find(|entry| load(entry, 0) == *identity);
            let (count, error) = own.map_or_else(|| (smallest(), smallest()), |entry| (load(entry, 1), load(entry, 2)));
            value.count = value.count.saturating_add(count);
            value.error = value.error.saturating_add(error);
        }
    }
    let mut values: Vec<_> = values.into_values().collect();
    values.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
    values
}
