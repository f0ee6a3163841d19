//! The counterpart on systems other than Linux, where no ring is in a file.

use crate::ring_files::reservation::{MemoryPolicy, Reservation};
use crate::session_dir::{MemorySum, ProcessDir, RingDirError};
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_ring::channel::{MemorySource, RingMemory, RingRequest};

/// Creates no files: there is no directory for them.
#[derive(Debug)]
pub struct RingFiles(Infallible);

impl RingFiles {
    /// Is not reached: there is no [`ProcessDir`].
    #[expect(clippy::needless_pass_by_value, reason = "the counterpart keeps them")]
    pub fn new(dir: Arc<ProcessDir>, _: &str, _: Arc<dyn MemoryPolicy>, _: Option<Arc<AtomicU64>>) -> Self {
        dir.none()
    }
}

impl MemorySource for RingFiles {
    fn ring_memory(&self, _: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        match self.0 {}
    }
}

/// There is no mapped sum.
#[derive(Debug)]
pub struct MappedMemorySum(Infallible);

impl MappedMemorySum {
    /// Is not reached: there is no [`ProcessDir`].
    pub fn open(dir: &ProcessDir) -> Result<Self, RingDirError> {
        dir.none()
    }

    /// Is not reached.
    pub const fn words(&self) -> &MemorySum {
        match self.0 {}
    }
}

/// There are no mapped words.
#[derive(Debug)]
pub struct MappedWords(Infallible);

impl MappedWords {
    /// Refuses: files are not mapped here.
    pub fn new(_: &File, _: usize, _: Reservation) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Is not reached.
    pub const fn words(&self) -> &[AtomicU64] {
        match self.0 {}
    }
}
