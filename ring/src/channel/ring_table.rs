//! The table of the threads' rings, in memory that a forked child finds empty.
//!
//! A child must not use its parent's rings; their memory is not even mapped there. The kernel clears this table in the child
//! (`MADV_WIPEONFORK`), however the child is created: also between `fork` and its handlers, and after a raw `clone` without handlers. On
//! kernels without it, the fork handler calls [`detach`](RingTable::detach).
//!
//! The table has room for every thread that can have a slot, 64 KiB. The pages of existing threads and of the next ones
//! are resident ([`prepare`](RingTable::prepare)), so that no thread takes the page fault at its first event.

use super::ring_entry::RingEntry;
use crate::thread::{self, MAX_THREADS, ThreadSlot};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

#[repr(C)]
struct Table {
    /// 1 in the process that allocated the table.
    attached: AtomicU32,
    rings: [RingEntry; MAX_THREADS],
}

/// The rings of the threads, by slot index.
#[derive(Debug)]
pub(super) struct RingTable {
    table: NonNull<Table>,
    /// Number of entries on resident pages, starting with the first. Relaxed: threads that raise it concurrently touch the same pages.
    resident: AtomicUsize,
}

// SAFETY: points to a table of atomics that this value owns.
unsafe impl Send for RingTable {}
// SAFETY: as above.
unsafe impl Sync for RingTable {}

const PAGE: usize = 4096;
/// Number of entries per page.
const OF_PAGE: usize = PAGE / size_of::<RingEntry>();
const LAYOUT: Layout = match Layout::from_size_align(size_of::<Table>().next_multiple_of(PAGE), PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("a page is a power of two"),
};

impl RingTable {
    /// `None` if there is no memory.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: the layout has a size above zero.
        let table = NonNull::new(unsafe { alloc_zeroed(LAYOUT) })?.cast::<Table>();
        let ring_table = Self { table, resident: AtomicUsize::new(0) };
        #[cfg(linux_kernel)]
        ring_table.advise(libc::MADV_WIPEONFORK);
        ring_table.prepare();
        ring_table.table().attached.store(1, Ordering::Relaxed);
        Some(ring_table)
    }

    /// Makes resident the pages of existing threads, and of as many more as fit on a page.
    pub(super) fn prepare(&self) {
        let from = self.resident.load(Ordering::Relaxed);
        let wanted = (thread::high_water() + OF_PAGE).min(MAX_THREADS);
        if from >= wanted {
            return;
        }
        for ring in self.rings()[from..wanted].iter().step_by(OF_PAGE).chain([&self.rings()[wanted - 1]]) {
            ring.touch();
        }
        self.resident.store(wanted, Ordering::Relaxed);
    }

    /// Calls `madvise` for the table. Does nothing if the kernel's pages are larger than [`PAGE`], because they then contain other
    /// allocations; fails without effect on older kernels.
    #[cfg(linux_kernel)]
    fn advise(&self, advice: libc::c_int) {
        // SAFETY: takes a plain number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if usize::try_from(page).is_ok_and(|page| page <= PAGE) {
            // SAFETY: whole pages that contain only this table; a table of zeros, which a child finds, is a valid one.
            unsafe { libc::madvise(self.table.as_ptr().cast(), LAYOUT.size(), advice) };
        }
    }

    #[inline(always)]
    fn table(&self) -> &Table {
        // SAFETY: allocated in `new`, zeroed, which is a valid table, and freed when this value is dropped.
        unsafe { self.table.as_ref() }
    }

    /// Returns whether this is the process that owns the rings.
    pub(super) fn is_attached(&self) -> bool {
        self.table().attached.load(Ordering::Relaxed) != 0
    }

    /// The entry of a thread.
    #[inline(always)]
    pub(super) fn entry(&self, slot: &'static ThreadSlot) -> &RingEntry {
        &self.table().rings[slot.index()]
    }

    /// The entries of all threads, by slot index.
    pub(super) fn rings(&self) -> &[RingEntry] {
        &self.table().rings
    }

    /// Clears the table, in the child after fork.
    pub(super) fn detach(&self) {
        self.table().attached.store(0, Ordering::Relaxed);
        for ring in &self.table().rings {
            ring.clear();
        }
    }
}

impl Drop for RingTable {
    fn drop(&mut self) {
        // The next user of the memory expects it to survive a fork.
        #[cfg(linux_kernel)]
        self.advise(libc::MADV_KEEPONFORK);
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.table.as_ptr().cast(), LAYOUT) };
    }
}
