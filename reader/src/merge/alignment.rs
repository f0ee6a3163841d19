//! Aligns the clocks of traces that are merged.

use super::Directory;
use crate::clock_alignment::{ClockAlignment, read};
use std::collections::HashMap;

/// Aligns the clocks of directories that were opened.
pub(super) fn align<'a>(directories: impl Iterator<Item = &'a mut Directory>) {
    let directories: Vec<_> = directories.collect();
    let mut by_clock: HashMap<[u8; 16], (i64, u64)> = HashMap::new();
    let mut own = Vec::with_capacity(directories.len());
    for directory in &directories {
        let alignment = read(&directory.path);
        if let Some((alignment, clock)) = alignment.zip(directory.clock()) {
            let least = by_clock.entry(clock).or_insert(alignment);
            *least = if alignment.1 < least.1 { alignment } else { *least };
        }
        own.push(alignment);
    }
    for (directory, own) in directories.into_iter().zip(own) {
        let of_clock = directory.clock().and_then(|clock| by_clock.get(&clock).copied());
        let Some((offset, bound)) = of_clock.or(own) else { continue };
        let Some(clock) = directory.metadata.clocks().first() else { continue };
        let alignment = ClockAlignment::of(clock, offset, bound);
        directory.metadata = directory.metadata.with_offset(offset);
        directory.alignment = Some(alignment);
    }
}
