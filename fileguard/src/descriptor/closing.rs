//! Closes a descriptor that the program may have closed already.
#![expect(unsafe_code, reason = "the standard library ends a debug build that closes a closed descriptor")]

use std::os::fd::{IntoRawFd, OwnedFd};

/// Closes a descriptor. Does nothing if the program has closed it. Dropping it instead would abort the program if debug assertions are on.
pub(super) fn close(held: impl Into<OwnedFd>) {
    let number = held.into().into_raw_fd();
    // SAFETY: the number was that of an owner, which does not exist any more: nothing else of the library uses or closes it.
    let _ = unsafe { libc::close(number) };
}
