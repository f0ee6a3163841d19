//! Memory that is reserved for rings and statistics.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Decides how much memory the rings, or the statistics, of a session in this process may take.
pub trait MemoryPolicy: fmt::Debug + Send + Sync {
    /// Takes this many bytes. If they are in a file, the file already exists.
    ///
    /// # Errors
    ///
    /// If too little memory would remain for the program.
    fn take(&self, bytes: u64) -> io::Result<()>;

    /// Checks again, when the memory of bytes that were taken has been allocated: other processes that took bytes at the same time may not have
    /// allocated them when this process did. Is not called for private memory.
    ///
    /// # Errors
    ///
    /// If too little memory remains for the program; the caller releases the memory.
    fn check_allocated(&self) -> io::Result<()> {
        Ok(())
    }

    /// Releases this many bytes.
    fn give_back(&self, bytes: u64);

    /// Stores the outcome of a request of this many bytes: `None`, or the error.
    fn note(&self, _bytes: usize, _refusal: Option<&io::Error>) {}

    /// Returns the last refusal of this many bytes or fewer, if it is so recent that another attempt would be pointless.
    fn recent_refusal(&self, _bytes: usize) -> Option<io::Error> {
        None
    }

    /// Chooses the size of the next ring from `sizes`, which descend.
    fn choose_size(&self, sizes: &[usize]) -> usize {
        sizes[0]
    }

    /// Returns how many bytes the additional rings of threads that fill their own may take, of the `configured` number.
    fn overflow_limit(&self, configured: usize) -> usize {
        configured
    }
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub struct Reservation {
    /// `None` for a page that all processes of a session share. It is not counted: the limits are for the memory of events.
    policy: Option<Arc<dyn MemoryPolicy>>,
    bytes: AtomicU64,
}

impl Reservation {
    /// Reserves `len` bytes.
    ///
    /// # Errors
    ///
    /// If the policy refuses them.
    pub fn new(policy: Arc<dyn MemoryPolicy>, len: usize) -> io::Result<Self> {
        policy.take(len as u64)?;
        Ok(Self { policy: Some(policy), bytes: AtomicU64::new(len as u64) })
    }

    /// Creates a reservation for a page that all processes of a session share.
    pub(super) fn of_page() -> Self {
        Self { policy: None, bytes: AtomicU64::new(0) }
    }

    /// Checks again when the memory is allocated; see [`MemoryPolicy::check_allocated`].
    pub(super) fn check_allocated(&self) -> io::Result<()> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.check_allocated())
    }

    /// Releases a part.
    pub(super) fn shrink(&self, bytes: usize) {
        if let Some(policy) = &self.policy {
            self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
            policy.give_back(bytes as u64);
        }
    }

    /// Reserves this many more bytes.
    pub(super) fn grow(&self, bytes: usize) -> io::Result<()> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let taken = policy.take(bytes as u64);
        policy.note(bytes, taken.as_ref().err());
        taken?;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(policy) = &self.policy {
            policy.give_back(*self.bytes.get_mut());
        }
    }
}
