//! A ring for each thread that is nothing but memory: where it begins, and how far it is filled. The oldest is overwritten. No
//! reader, no packets, no counters: what anything that is to be read needs more than this, it must pay for.

use crate::tally;
use crate::variant::{Arm, Armed};
use std::cell::Cell;
use std::ptr;

/// As large as the rings of everybody else.
pub(super) const SIZE: usize = 256 << 10;

thread_local! {
    static BASE: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
    static USED: Cell<usize> = const { Cell::new(0) };
}

/// Reserves `size` bytes, the beginning again when the ring is full; nothing if this thread has no ring.
#[inline(always)]
pub(super) fn reserve(size: usize) -> Option<*mut u8> {
    let to = room(size)?;
    fill(size);
    Some(to)
}

/// A place for `most` bytes, as [`reserve`] gives it, of which [`fill`] tells later how many were used.
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

/// Keeps `size` bytes of the place that [`room`] gave for as many or more.
#[inline(always)]
pub(super) fn fill(size: usize) {
    USED.set(USED.get() + size);
}

/// Gives this thread a ring. At the end every record is shown, of `size` bytes each: those that nothing overwrote.
fn with(size: usize, tell: Option<fn(&[u8])>) -> Armed {
    let ring = Box::leak(vec![0u8; SIZE].into_boxed_slice());
    BASE.set(ring.as_mut_ptr());
    USED.set(0);
    let ring: *mut [u8] = ring;
    Armed::until(move || {
        BASE.set(ptr::null_mut());
        // SAFETY: leaked above, and BASE, the only other way to it, is gone.
        let ring = unsafe { Box::from_raw(ring) };
        if let Some(tell) = tell {
            let used = &ring[..USED.get()];
            used.chunks_exact(size).for_each(tell);
            tally::add_bytes(used.len() as u64);
        }
    })
}

/// A ring for this thread that is never looked at.
pub(super) const SILENT: Arm = || Ok(with(SIZE, None));

/// A ring for this thread, whose records of `SIZE` bytes are shown to `tell`.
pub(super) fn telling(size: usize, tell: fn(&[u8])) -> Armed {
    with(size, Some(tell))
}
