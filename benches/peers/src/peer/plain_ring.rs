//! A plain ring for each thread: memory, and the position up to which it is filled. The oldest records are overwritten. It has no
//! reader, no packets and no counters, and is the lower bound for rings that can be read.

use crate::tally;
use crate::variant::{Arm, Armed};
use std::cell::Cell;
use std::ptr;

/// The size of the rings of the other libraries.
pub(super) const SIZE: usize = 256 << 10;

thread_local! {
    static BASE: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
    static USED: Cell<usize> = const { Cell::new(0) };
}

/// Reserves `size` bytes, from the beginning again when the ring is full; `None` if this thread has no ring.
#[inline(always)]
pub(super) fn reserve(size: usize) -> Option<*mut u8> {
    let to = room(size)?;
    fill(size);
    Some(to)
}

/// Reserves up to `most` bytes as [`reserve`] does; [`fill`] sets how many of them are used.
#[inline(always)]
pub(super) fn room(most: usize) -> Option<*mut u8> {
    let base = BASE.get();
    if base.is_null() {
        return None;
    }
    if USED.get() + most > SIZE {
        USED.set(0);
    }
    // SAFETY: `most` more than this are at most SIZE, the size of what BASE points to.
    Some(unsafe { base.add(USED.get()) })
}

/// Keeps the first `size` of the bytes that [`room`] reserved.
#[inline(always)]
pub(super) fn fill(size: usize) {
    USED.set(USED.get() + size);
}

/// Gives this thread a ring. At the end, all records of `size` bytes that were not overwritten are passed on.
fn with(size: usize, add_to_tally: Option<fn(&[u8])>) -> Armed {
    let ring = Box::leak(vec![0u8; SIZE].into_boxed_slice());
    BASE.set(ring.as_mut_ptr());
    USED.set(0);
    let ring: *mut [u8] = ring;
    Armed::until(move || {
        BASE.set(ptr::null_mut());
        // SAFETY: leaked above, and BASE, the only other way to it, is gone.
        let ring = unsafe { Box::from_raw(ring) };
        if let Some(add_to_tally) = add_to_tally {
            let used = &ring[..USED.get()];
            used.chunks_exact(size).for_each(add_to_tally);
            tally::add_bytes(used.len() as u64);
        }
    })
}

/// A ring for this thread that is not read.
pub(super) const SILENT: Arm = || Ok(with(SIZE, None));

/// A ring for this thread, whose records of `SIZE` bytes are passed to `add_to_tally`.
pub(super) fn read_at_end(size: usize, add_to_tally: fn(&[u8])) -> Armed {
    with(size, Some(add_to_tally))
}
