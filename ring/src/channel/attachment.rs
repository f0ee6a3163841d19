//! Which thread has which ring, in memory that a forked child finds empty.
//!
//! A child has no part in its parent's rings: their memory is not even mapped there. The kernel wipes this table when the child is
//! made, however it is made, so that no child can run into a ring, not between `fork` and its handlers, and not after a raw `clone`
//! that runs no handlers. Where it cannot be wiped, [`detach`](Attachment::detach) does it, called by the handler.

use super::ring::Ring;
use crate::thread::{MAX_THREADS, ThreadSlot};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

#[repr(C)]
struct Table {
    /// 1 in the process that made it.
    attached: AtomicU32,
    rings: [AtomicPtr<Ring>; MAX_THREADS],
}

/// The rings of the threads, by the threads' places in their table.
#[derive(Debug)]
pub(super) struct Attachment(NonNull<Table>);

// SAFETY: a table of atomics, owned by this value.
unsafe impl Send for Attachment {}
// SAFETY: as above.
unsafe impl Sync for Attachment {}

const PAGE: usize = 4096;
const LAYOUT: Layout = match Layout::from_size_align(size_of::<Table>().next_multiple_of(PAGE), PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("a page is a power of two"),
};

impl Attachment {
    /// `None` if there is no memory.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: the layout has a size above zero.
        let table = NonNull::new(unsafe { alloc_zeroed(LAYOUT) })?.cast::<Table>();
        let attachment = Self(table);
        #[cfg(linux_kernel)]
        attachment.advise(libc::MADV_WIPEONFORK);
        for ring in &attachment.table().rings {
            // Touched now, so that no thread has to wait for the page at its first event.
            ring.store(null_mut(), Ordering::Relaxed);
        }
        attachment.table().attached.store(1, Ordering::Relaxed);
        Some(attachment)
    }

    /// What is to become of the table in a child; nothing changes where the kernel is too old, or its pages are larger than these, and
    /// hold what is others'.
    #[cfg(linux_kernel)]
    fn advise(&self, advice: libc::c_int) {
        // SAFETY: takes a plain number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if usize::try_from(page).is_ok_and(|page| page <= PAGE) {
            // SAFETY: whole pages that this value owns, and that hold nothing else; a child that finds zeros in them finds a valid
            // table.
            unsafe { libc::madvise(self.0.as_ptr().cast(), LAYOUT.size(), advice) };
        }
    }

    #[inline(always)]
    fn table(&self) -> &Table {
        // SAFETY: allocated in `new`, zero at first, which is a valid table, and freed when this value drops.
        unsafe { self.0.as_ref() }
    }

    /// Whether this is the process that the rings belong to.
    pub(super) fn is_attached(&self) -> bool {
        self.table().attached.load(Ordering::Relaxed) != 0
    }

    /// The ring of a thread; null if it has none yet.
    #[inline(always)]
    pub(super) fn ring(&self, slot: &'static ThreadSlot) -> &AtomicPtr<Ring> {
        &self.table().rings[slot.index()]
    }

    /// All of them.
    pub(super) fn rings(&self) -> &[AtomicPtr<Ring>] {
        &self.table().rings
    }

    /// In the child after fork.
    pub(super) fn detach(&self) {
        self.table().attached.store(0, Ordering::Relaxed);
        for ring in &self.table().rings {
            ring.store(null_mut(), Ordering::Relaxed);
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Whoever gets the memory next wants to keep it over fork.
        #[cfg(linux_kernel)]
        self.advise(libc::MADV_KEEPONFORK);
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.0.as_ptr().cast(), LAYOUT) };
    }
}
