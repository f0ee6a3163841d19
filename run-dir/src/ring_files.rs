//! Rings in files: memory that outlives the process, and that other processes can read. Or in private memory.
//!
//! `docs/format-ring.md` describes the files. The ring itself writes everything except the identity page.

#[cfg_attr(not(target_os = "linux"), path = "ring_files/no_files.rs")]
mod files;
mod mapping;
mod memory_image;
mod reservation;
#[cfg(target_os = "linux")]
mod words;

#[cfg(not(target_os = "linux"))]
pub use files::MappedWords;
#[cfg(target_os = "linux")]
pub(crate) use files::map_bucket;
#[cfg(target_os = "linux")]
pub use files::map_wake_file;
pub use files::{MappedMemorySum, RingFiles};
pub use memory_image::MemoryImage;
pub use reservation::{MemoryPolicy, Reservation};
#[cfg(target_os = "linux")]
pub use words::MappedWords;

use crate::own_process::thread_count;
use mapping::Mapping;
use std::io;
use std::sync::Arc;
use tracepoint_ring::channel::{MemorySource, RingMemory, RingRequest};

/// Creates rings in private memory.
#[derive(Debug)]
pub struct RingsInMemory {
    /// The memory of the rings, and its limits.
    pub memory: Arc<dyn MemoryPolicy>,
    /// Lists the rings.
    pub image: Arc<MemoryImage>,
}

impl MemorySource for RingsInMemory {
    fn choose_size(&self, sizes: &[usize]) -> usize {
        self.memory.choose_size(sizes)
    }

    fn overflow_limit(&self, configured: usize) -> usize {
        self.memory.overflow_limit(configured)
    }

    fn thread_count(&self) -> Option<usize> {
        thread_count()
    }

    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        let reserved = Reservation::new(Arc::clone(&self.memory), request.len);
        let made = reserved.and_then(|reserved| Mapping::anonymous(request.len, reserved));
        self.memory.note(request.len, made.as_ref().err());
        Ok(Box::new(self.image.add(request, made?)))
    }
}
