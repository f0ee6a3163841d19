//! The counterpart on systems other than Linux: a session has no directory there.

#[path = "../session_dir/error.rs"]
mod error;
#[path = "../session_dir/memory_sum.rs"]
mod memory_sum;
#[path = "../session_dir/options.rs"]
mod options;

pub use error::RingDirError;
pub use memory_sum::MemorySum;
pub use options::{KeepDead, Options, Place};

use crate::private_dir::PrivateDir;
use crate::rundir::RunDir;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of attempts to make a directory.
pub const TRIES: u32 = 1;

/// The directory of this process in a session, which does not exist here.
#[derive(Debug)]
pub struct ProcessDir(Infallible);

impl ProcessDir {
    /// Refuses: rings are in memory here.
    pub fn make(options: &Options, _: &str) -> Result<Self, RingDirError> {
        Err(match &options.place {
            Place::RunDir => RunDir::find().map_err(RingDirError::RunDir).err(),
            Place::At(path) => PrivateDir::at(path).map_err(RingDirError::Dir).err(),
        }
        .unwrap_or_else(|| unreachable!("there is no directory")))
    }

    /// Returns the result of any operation: none takes place.
    pub(crate) const fn none<T>(&self) -> T {
        match self.0 {}
    }

    /// Is not reached.
    pub fn path(&self) -> &Path {
        self.none()
    }

    /// Is not reached.
    pub fn name(&self) -> &str {
        self.none()
    }

    /// Is not reached.
    pub fn run_dir(&self) -> Option<&Path> {
        self.none()
    }

    /// Is not reached.
    pub fn session(&self) -> &PrivateDir {
        self.none()
    }

    /// Is not reached.
    pub fn dir(&self) -> &PrivateDir {
        self.none()
    }

    /// Is not reached.
    pub fn shared_dir(&self) -> Arc<PrivateDir> {
        self.none()
    }

    /// Is not reached.
    pub fn describe(&self, _: &str, _: Option<&[u8]>) -> Result<(), RingDirError> {
        self.none()
    }

    /// Is not reached.
    pub fn touch(&self) {
        self.none()
    }

    /// Is not reached.
    pub fn make_flushed_file(&self) -> Result<FlushedFile, RingDirError> {
        self.none()
    }

    /// Is not reached.
    pub fn admit_consumer(&self) -> Result<(), RingDirError> {
        self.none()
    }

    /// Is not reached.
    pub fn leave(&self) {
        self.none()
    }

    /// Is not reached.
    pub fn memory_of_living(&self) -> io::Result<u64> {
        self.none()
    }

    /// Is not reached.
    pub fn remove(&self) {
        self.none()
    }
}

/// The file for a remote consumer, which does not exist here.
#[derive(Debug)]
pub struct FlushedFile(Infallible);

impl FlushedFile {
    /// Is not reached.
    pub fn write(&mut self, _: u64) -> io::Result<()> {
        match self.0 {}
    }
}
