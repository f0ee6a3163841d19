//! The second way to write to code: the pages are made writable for a moment.
//!
//! That they are made unwritable again is not a matter of course: the kernel may be short of memory, a filter may refuse just that.
//! Then they are remembered, counted, and tried again with the next batch. What has been written stands, whatever becomes of them.

use super::entry::{Form, Site};
use super::segment::{PAGE, Segment, Segments};
use std::ffi::c_int;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::primitive::Mutex;

/// Pages that stayed writable, and are to be made unwritable. Under the control lock, as all of this; the lock of its own is never
/// waited for.
static LEFT: Mutex<Vec<Pages>> = Mutex::new(Vec::new());
static STAYED: AtomicU64 = AtomicU64::new(0);

/// Pages of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pages {
    start: usize,
    length: usize,
    segment: Segment,
}

impl Pages {
    /// Those from the first of a group of sites to its last, which are in one segment.
    fn of(group: &[Site<'_>]) -> Option<Self> {
        let (first, last) = (group.first()?, group.last()?);
        let start = first.opcode() / PAGE * PAGE;
        Some(Self { start, length: last.opcode() - start + 1, segment: first.segment()? })
    }

    fn protect(self, protection: c_int) -> io::Result<()> {
        // SAFETY: pages of one segment of this program's code: the sites at both ends were found there, and its object is loaded.
        // They keep what the file asks for throughout, so that nobody who runs in them notices.
        let failed =
            unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(self.start), self.length, protection) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn make_writable(self) -> io::Result<()> {
        let Err(refused) = self.protect(self.segment.protection() | libc::PROT_WRITE) else { return Ok(()) };
        // A range that the kernel divides may have been changed in part. Nothing of it was if all changes are refused alike, as by a
        // filter; want of memory alone says the same in both cases.
        let changed = match self.restore() {
            Ok(()) => false,
            Err(again) => again.raw_os_error() != refused.raw_os_error() || again.raw_os_error() == Some(libc::ENOMEM),
        };
        if changed {
            self.leave();
        }
        Err(refused)
    }

    /// Back to what the file asks for.
    fn restore(self) -> io::Result<()> {
        self.protect(self.segment.protection())
    }

    fn leave(self) {
        STAYED.fetch_add(1, Ordering::Relaxed);
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.contains(&self) {
            left.push(self);
        }
    }
}

/// Writes to a group of neighbours: the pages from the first to the last are writable meanwhile.
pub(super) fn write(group: &[Site<'_>], form: Form) -> io::Result<()> {
    let Some(pages) = Pages::of(group) else { return Ok(()) };
    pages.make_writable()?;
    for site in group {
        if site.form().is_some() {
            // SAFETY: the page is writable, and the byte is the opcode of a site of ours; one byte is written in one piece.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(site.opcode()).write_volatile(form.byte()) };
        }
    }
    // Short of memory for the moment, if it fails: nothing of what was allowed before is asked for.
    if pages.restore().or_else(|_| pages.restore()).is_err() {
        pages.leave();
    }
    Ok(())
}

/// Tries again to make unwritable what stayed writable.
pub(super) fn restore_left() {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).retain(|pages| pages.restore().is_err());
}

/// Forgets what stayed writable of an object that is being unloaded.
pub(super) fn forget(code: &Segments) {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).retain(|pages| !code.contains(pages.segment));
}

/// How many times pages stayed writable.
pub(super) fn stayed_writable() -> u64 {
    STAYED.load(Ordering::Relaxed)
}

/// Whether no filter of system calls is installed for this thread. One that refuses this call, too, is one.
pub(super) fn nobody_filters() -> bool {
    // SAFETY: takes plain numbers.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) == 0 }
}
