//! Results from copies of memory that another process is changing.
//!
//! A copy made by the kernel loads the words in an unspecified order, so a sequence word in it implies nothing about neighbouring words. But one copy
//! is complete before the next begins: data published by a word of an earlier copy is present in the later one, and a word that is the same in an
//! earlier and a later copy did not change in the copy between them.

use super::{FormatError, Snapshot};
use crate::key::KEY_WORDS;
use crate::layout::{Kind, LAST_WORDS, Layout, counter};
use crate::memory::load;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of copies of a table of frequent values, until one has no concurrent change.
const TRIES: usize = 50;

type Copy = Box<[AtomicU64]>;

impl Snapshot {
    /// Reads the results from copies of memory that another process may be changing. `copy` is called two to a hundred times, and must make a new
    /// copy each time.
    ///
    /// # Errors
    ///
    /// The error of `copy`; [`FormatError`] as in [`Snapshot::read`].
    pub fn read_shared<E>(mut copy: impl FnMut() -> Result<Copy, E>) -> Result<Result<Self, FormatError>, E> {
        let (mut first, mut memory) = (copy()?, copy()?);
        let Some((layout, text)) = Layout::load(&memory).filter(|_| first.len() == memory.len()) else {
            return Ok(Err(FormatError));
        };
        hide_unpublished_keys(&first, &memory, &layout);
        match layout.kind {
            Kind::Last => hide_changed_values(&first, &memory, &copy()?, &layout),
            Kind::Top => {
                for _ in 0..TRIES {
                    let last = copy()?;
                    if last.len() != first.len() || is_unchanged(&first, &last, &layout) {
                        break;
                    }
                    (first, memory) = (last, copy()?);
                }
            }
            Kind::Histogram(_) | Kind::Latency => {
                for _ in 1..super::TRIES {
                    if Self::once(&memory, &layout, "").1 {
                        break;
                    }
                    (first, memory) = (memory, copy()?);
                    if first.len() != memory.len() {
                        return Ok(Err(FormatError));
                    }
                    hide_unpublished_keys(&first, &memory, &layout);
                }
            }
            Kind::Count | Kind::Rate => {}
        }
        if Layout::load(&memory).is_none_or(|(now, _)| now != layout) {
            return Ok(Err(FormatError));
        }
        Ok(Ok(Self::once(&memory, &layout, &text).0))
    }
}

/// Removes keys missing in the first copy: they may be incomplete in the second one.
fn hide_unpublished_keys(first: &[AtomicU64], memory: &[AtomicU64], layout: &Layout) {
    for group in 0..layout.groups {
        for key in 0..layout.keys {
            let at = layout.group_at(group) + 1 + key * KEY_WORDS;
            if load(first, at) == 0 {
                memory[at].store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Removes entries of the last values whose sequence words differ before and after.
fn hide_changed_values(first: &[AtomicU64], memory: &[AtomicU64], last: &[AtomicU64], layout: &Layout) {
    for cell in layout.cells.starts() {
        for entry in 0..layout.entries() {
            let at = cell + layout.row(Some(0)) + 1 + entry * LAST_WORDS;
            if last.get(at).is_none_or(|last| last.load(Ordering::Relaxed) != load(first, at)) {
                memory[at].store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Returns whether no table was changed between two copies.
fn is_unchanged(first: &[AtomicU64], last: &[AtomicU64], layout: &Layout) -> bool {
    let locks = || layout.cells.starts().map(|cell| cell + counter::LOCK);
    locks().all(|at| load(first, at) & 1 == 0 && load(first, at) == load(last, at))
}
