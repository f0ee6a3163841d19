//! The memory of a ring.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ops::Range;
use std::ptr::NonNull;

/// The memory of one ring. Dropping it frees the memory.
///
/// # Safety
///
/// For as long as the value lives, the `len` bytes at `base` are readable and writable, and aligned to 4096 bytes. Only the ring writes to
/// them; other processes may read committed data. They are zero at first, except for those of [`RING_IDENTITY`], which the source of the
/// memory writes. They should be resident: a page fault in a site is a stall that this crate promises not to cause. Memory for a
/// [wake word](MemorySource::wake_memory) may have any content, and other processes write its first word, as an atomic.
pub unsafe trait RingMemory: Send + Sync {
    /// The address of the first byte.
    fn base(&self) -> NonNull<u8>;
    /// The size in bytes.
    fn len(&self) -> usize;
    /// Returns whether the bytes are still those that were stored. If they were lost, for example because a mapped file was truncated, the
    /// implementation may replace them, by zeros at first, provided that this returns `false` from then on: the ring is then abandoned, and its
    /// contents are lost.
    fn is_whole(&self) -> bool {
        true
    }
    /// Returns the memory of these bytes to the system, at multiples of 4096; they are zero, and not resident, from then on. They are not
    /// accessed until [`take_back`](Self::take_back) has succeeded.
    ///
    /// # Errors
    ///
    /// If that is not possible: the memory stays unchanged.
    fn give_back(&self, _bytes: Range<usize>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Makes bytes that were [given back](Self::give_back) resident again.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    fn take_back(&self, _bytes: Range<usize>) -> io::Result<()> {
        Ok(())
    }
    /// Returns whether the size is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The bytes of a ring's memory that identify the process and session (`docs/format-ring.md`). Written by the [`MemorySource`], never by the
/// ring.
pub const RING_IDENTITY: Range<usize> = 1024..4096;

/// A request for the memory of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingRequest<'a> {
    /// The channel's name.
    pub channel: &'a str,
    /// The id of its stream class.
    pub class: u32,
    /// The index of the ring in the channel, from 0; `None` for the counters of threads without a ring.
    pub index: Option<u64>,
    /// The size in bytes.
    pub len: usize,
}

impl<'a> RingRequest<'a> {
    /// A request for `len` bytes.
    pub const fn new(channel: &'a str, class: u32, index: Option<u64>, len: usize) -> Self {
        Self { channel, class, index, len }
    }
}

/// The source of the memory of a channel's rings. Called when the channel is opened and by its consumer, never by a site.
pub trait MemorySource: Send + Sync {
    /// Selects the size in bytes of another ring from `sizes`, which are in descending order: the largest one unless memory is scarce.
    fn choose_size(&self, sizes: &[usize]) -> usize {
        sizes[0]
    }

    /// The number of threads of the process, if known: rings for new threads are created before they fire.
    fn thread_count(&self) -> Option<usize> {
        None
    }

    /// Allocates at least `request.len` bytes.
    ///
    /// # Errors
    ///
    /// If there is no memory; the channel then continues with its existing rings.
    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>>;

    /// Maximum number of bytes, at most `configured`, that the [overflow](super::Channel::overflow) of the channel may take.
    fn overflow_limit(&self, configured: usize) -> usize {
        configured
    }

    /// The memory of the sleep word of a consumer in another process (see [`WakeWord`](super::WakeWord)), at least 4 bytes; `None` if
    /// this process drains the rings itself.
    fn wake_memory(&self) -> Option<Box<dyn RingMemory>> {
        None
    }
}

/// Private memory of the process, made resident when it is allocated. Its contents are lost when the process ends.
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
            // SAFETY: inside the allocation. Volatile, so that the compiler does not remove the store, which makes the page resident.
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

// SAFETY: plain bytes that this value owns, independent of the thread.
unsafe impl Send for Allocation {}
// SAFETY: this type does not access the bytes through a shared reference; the ring does, as the contract of `RingMemory` allows.
unsafe impl Sync for Allocation {}

// SAFETY: `alloc_zeroed` returned `layout.size()` zero bytes at a multiple of PAGE, owned by this value until it drops, and `new`
// has touched every page.
unsafe impl RingMemory for Allocation {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.layout.size()
    }
}
