//! The order in which a reader loads the header of a packet that its owner may be replacing (C2, C3 in `docs/ordering.md`). `models/` checks it
//! with loom.
//!
//! A look is one call that loads the header. The words of one call are loaded in any order: words whose order matters are taken from several.

#[cfg(loom)]
use loom::sync::atomic::{Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{Ordering, fence};

/// C3: orders the loads of a system call before all later loads, which the call by itself does not. Pairs with the stores of C1, C2, R2 and H1.
pub(crate) fn end_call() {
    fence(Ordering::Acquire);
}

/// Returns a header with its magic and number, or one without a magic. The fields after the magic, loaded by later calls, are those of this
/// packet or of a later one.
pub(crate) fn first_look<H, E>(mut look: impl FnMut() -> Result<H, E>, has_magic: impl Fn(&H) -> bool) -> Result<H, E> {
    let found = look()?;
    if !has_magic(&found) {
        return Ok(found);
    }
    // C2: the number, in another call than the magic.
    let numbered = look()?;
    if !has_magic(&numbered) {
        return Ok(numbered);
    }
    // C2: the first magic may be that of the packet before, whose owner has stored the new number, and not yet the fields behind it.
    let whole = look()?;
    Ok(if has_magic(&whole) { numbered } else { whole })
}

/// Returns the magic and the number behind a copy. An owner that has overwritten the bytes has cleared the magic before, and has stored another
/// number before it stored the magic again.
pub(crate) fn look_again<E>(mut look: impl FnMut() -> Result<(u32, u64), E>) -> Result<(u32, u64), E> {
    let (magic, _) = look()?;
    // C2: the number, in another call than the magic.
    let (_, sequence) = look()?;
    Ok((magic, sequence))
}
