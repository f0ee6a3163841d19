//! The memory of a ring.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

/// Memory for one ring. Dropping it gives the memory back.
///
/// # Safety
///
/// From `base` on, `len` bytes are readable and writable for as long as the value lives, aligned to 4096 bytes, and used by nobody
/// else but readers that look at what was committed. They are zero at first, but for those of [`RING_IDENTITY`], which belong to
/// whoever gives the memory. They should be resident: a page fault in a site is a stall that this crate promises not to cause.
pub unsafe trait RingMemory: Send + Sync {
    /// The first byte.
    fn base(&self) -> NonNull<u8>;
    /// How many bytes there are.
    fn len(&self) -> usize;
    /// Whether the bytes are still those that were stored there. Where they were lost, as those of a file that was cut off, others may
    /// stand in their place, zero at first, as long as that is said here: the ring is given up then, and what it held is lost. Once
    /// not whole, never whole again.
    fn is_whole(&self) -> bool {
        true
    }
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The bytes of a ring's memory that tell whose it is (`docs/format-ring.md`): written by whoever gives the memory, never by the
/// ring.
pub const RING_IDENTITY: std::ops::Range<usize> = 1024..4096;

/// What a ring's memory is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingRequest<'a> {
    /// The channel's name.
    pub channel: &'a str,
    /// The id of its stream class.
    pub class: u32,
    /// Which ring of the channel, counted from 0; `None` for the counters of threads that have no ring.
    pub index: Option<u64>,
    /// How many bytes are wanted.
    pub len: usize,
}

impl<'a> RingRequest<'a> {
    /// A request for `len` bytes.
    pub const fn new(channel: &'a str, class: u32, index: Option<u64>, len: usize) -> Self {
        Self { channel, class, index, len }
    }
}

/// Where a channel gets the memory of its rings from. Called by whoever drains, never by a site.
pub trait MemorySource: Send + Sync {
    /// Memory of at least `request.len` bytes.
    ///
    /// # Errors
    ///
    /// If there is none to be had; the channel then goes on with the rings that it has.
    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>>;
}

/// Memory of the process itself, made resident when it is made. It is gone when the process ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnonymousMemory;

impl MemorySource for AnonymousMemory {
    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        Ok(Box::new(Allocation::new(request.len)?))
    }
}

struct Allocation {
    base: NonNull<u8>,
    layout: Layout,
}

const PAGE: usize = 4096;

impl Allocation {
    fn new(len: usize) -> io::Result<Self> {
        let layout = Layout::from_size_align(len, PAGE).map_err(io::Error::other)?;
        if len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the layout has a size above zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        for offset in (0..len).step_by(PAGE) {
            // SAFETY: inside the allocation. Volatile, so that the store that makes the page resident is not left out.
            unsafe { base.as_ptr().add(offset).write_volatile(0) };
        }
        Ok(Self { base, layout })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

// SAFETY: plain bytes, owned by this value; whoever holds it may be on any thread.
unsafe impl Send for Allocation {}
// SAFETY: shared use is up to the ring, which is told so by `RingMemory`.
unsafe impl Sync for Allocation {}

// SAFETY: `alloc_zeroed` gave `layout.size()` zero bytes at a multiple of PAGE, owned by this value until it drops, and `new`
// has touched every page.
unsafe impl RingMemory for Allocation {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.layout.size()
    }
}
