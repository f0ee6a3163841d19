//! Writes to code by making its pages writable for a moment.
//!
//! Restoring the protection may fail: the kernel may be short of memory, or a seccomp filter may refuse the call. Such pages are
//! recorded and counted, and the next batch retries to restore them. The written sites keep their new form.

use super::entry::Site;
use super::machine::{Form, LENGTH, make_visible, page_size};
use super::segment::{Segment, Segments};
use std::ffi::c_int;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::primitive::Mutex;

/// Pages that stayed writable and wait to be restored. All functions here run under the update lock, so this mutex is never
/// contended.
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
    /// The pages from the address `first` to the address `last`, in the segment of a site.
    fn between(first: usize, last: usize, site: Site<'_>) -> Option<Self> {
        let start = first / page_size() * page_size();
        Some(Self { start, length: last - start + 1, segment: site.segment()? })
    }

    fn protect(self, protection: c_int) -> io::Result<()> {
        // SAFETY: pages of one segment of this program's code, which contains the sites at both ends, and whose object is loaded.
        // `protection` includes the segment's own flags, so that threads which execute these pages are not affected.
        let failed =
            unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(self.start), self.length, protection) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn make_writable(self) -> io::Result<()> {
        let Err(refused) = self.protect(self.segment.protection() | libc::PROT_WRITE) else { return Ok(()) };
        // If the range spans several mappings, the kernel may have changed some of them before it failed. If restoring fails with the
        // same error, as under a seccomp filter, no page was changed; ENOMEM is the exception, which occurs in both cases.
        let changed = match self.restore() {
            Ok(()) => false,
            Err(again) => again.raw_os_error() != refused.raw_os_error() || again.raw_os_error() == Some(libc::ENOMEM),
        };
        if changed {
            self.remember();
        }
        Err(refused)
    }

    /// Restores the segment's own protection.
    fn restore(self) -> io::Result<()> {
        self.protect(self.segment.protection())
    }

    /// Restores the protection. The call requests no more than the kernel allowed before, so a failure is most likely a temporary lack of memory:
    /// it retries once.
    fn restore_or_remember(self) {
        if self.restore().or_else(|_| self.restore()).is_err() {
            self.remember();
        }
    }

    /// Counts the pages as writable, for [`restore_left`].
    fn remember(self) {
        STAYED.fetch_add(1, Ordering::Relaxed);
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.contains(&self) {
            left.push(self);
        }
    }
}

/// Writes to a group of neighbouring sites, whose pages are writable meanwhile.
pub(super) fn write(group: &[Site<'_>], form: Form) -> io::Result<()> {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
    let Some(pages) = Pages::between(first.switched_at(), last.switched_at(), *first) else { return Ok(()) };
    pages.make_writable()?;
    for site in group {
        if site.form().is_some() {
            // SAFETY: the page is writable.
            unsafe { site.store(form) };
        }
    }
    make_visible(group.iter().map(|site| site.switched_at()));
    pages.restore_or_remember();
    Ok(())
}

/// Writes a whole instruction to a site that no thread executes.
pub(super) fn replace(site: Site<'_>, instruction: [u8; LENGTH]) -> io::Result<()> {
    let (start, end) = site.bounds();
    let Some(pages) = Pages::between(start, end - 1, site) else { return Ok(()) };
    pages.make_writable()?;
    // SAFETY: the pages are writable, and no thread executes the site, as the caller says.
    unsafe { site.replace(instruction) };
    pages.restore_or_remember();
    Ok(())
}

/// Retries to restore the pages that stayed writable.
pub(super) fn restore_left() {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).retain(|pages| pages.restore().is_err());
}

/// Drops the remembered pages of an object that is being unloaded.
pub(super) fn forget(code: &Segments) {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).retain(|pages| !code.contains(pages.segment));
}

/// Number of times pages stayed writable.
pub(super) fn stayed_writable() -> u64 {
    STAYED.load(Ordering::Relaxed)
}

/// Returns whether this thread has a seccomp filter. A refusal of the query itself counts as a filter.
pub(super) fn has_seccomp_filter() -> bool {
    // SAFETY: takes plain numbers.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) != 0 }
}
