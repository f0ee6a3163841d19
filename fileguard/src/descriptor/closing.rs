//! Closes a descriptor that the program may have closed already.
#![expect(unsafe_code, reason = "the standard library ends a debug build that closes a closed descriptor")]

#[cfg(test)]
use std::os::fd::RawFd;
use std::os::fd::{IntoRawFd, OwnedFd};

/// Closes a descriptor. Does nothing if the program has closed it. Dropping it instead would abort the program if debug assertions are on.
pub(super) fn close(held: impl Into<OwnedFd>) {
    let number = held.into().into_raw_fd();
    // SAFETY: the number was that of an owner, which does not exist any more: nothing else of the library uses or closes it.
    let _ = unsafe { libc::close(number) };
}

/// Closes a descriptor of the library, as a program does that does not know it.
#[cfg(test)]
pub(super) fn close_number(number: RawFd) -> std::io::Result<()> {
    // SAFETY: takes a plain number; the library expects closed descriptors.
    if unsafe { libc::close(number) } == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
