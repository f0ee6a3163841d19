//! Where a store is kept: in a [directory](crate::local), or as [objects](crate::object) in S3.
//!
//! Paths are relative to the store. What has a name that ends with `.parquet` is complete or absent for every reader; a change of several files
//! is made whole or not at all, as far as the backend permits.

use std::fmt::Debug;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;

use crate::error::StoreError;
use crate::files::{PartFile, Parts};
use crate::plan::{Plan, Retained};

/// The directory of what is no data.
pub(crate) const OWN: &str = ".tracepoint";

/// The contents of a Parquet file.
pub(crate) enum Contents {
    File(File),
    Bytes(Bytes),
}

/// Where a store is kept.
pub(crate) trait Backend: Debug + Send + Sync {
    /// Whether there is anything else than [`OWN`].
    fn has_others(&self) -> Result<bool, StoreError>;

    /// Prepares a new store for [`create`](Self::create).
    fn prepare(&self) -> Result<(), StoreError>;

    /// Reads a small file of [`OWN`], if it exists.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError>;

    /// Creates a small file of [`OWN`], which appears with all its contents; `false` if it exists.
    fn create(&self, path: &Path, contents: &[u8]) -> Result<bool, StoreError>;

    /// Completes the changes of processes that died and had committed them.
    fn recover(&self) -> Result<(), StoreError>;

    /// Whether a trace is in the store.
    fn has_trace(&self, trace: &str) -> Result<bool, StoreError>;

    /// Begins a change that adds files.
    fn begin(&self) -> Result<Transaction, StoreError>;

    /// The Parquet files.
    fn parts(&self) -> Result<Parts, StoreError>;

    /// The contents of one. The error is [`NotFound`](std::io::ErrorKind::NotFound) if it was removed since.
    fn contents(&self, file: &PartFile) -> Result<Contents, StoreError>;

    /// Waits until no other process replaces or removes files, and has others wait until the result is dropped.
    fn maintain(&self) -> Result<Box<dyn Maintenance + '_>, StoreError>;

    /// The objects, and the prefix of the store among them, if it is not in a directory.
    fn objects(&self) -> Option<Objects> {
        None
    }
}

/// An object store, and the prefix of a store in it.
pub type Objects = (Arc<dyn ObjectStore>, object_store::path::Path);

/// A change of a store.
pub(crate) type Transaction = Box<dyn Change>;

/// A change of a store, of which nothing is visible before it is committed.
pub(crate) trait Change: Send {
    /// A new file of a partition. Its name is unique, and ends with `extension`.
    fn add(&mut self, partition: &Path, extension: &str) -> Result<Box<dyn Output>, StoreError>;

    /// A file will be removed.
    fn remove(&mut self, path: PathBuf);

    /// Adds the files, and notes that these traces are in the store, each with its last day, which may be empty. After [`StoreError::AlreadyStored`] nothing is
    /// changed; after any other error nothing is changed, or the next one that opens the store completes it.
    fn commit(self: Box<Self>, traces: &[(String, String)]) -> Result<(), StoreError>;

    /// Adds and removes the files; changes nothing and returns `false` if one that would be removed is gone.
    fn replace(self: Box<Self>) -> Result<bool, StoreError>;

    /// Deletes what was written. What cannot be deleted is deleted later.
    fn abandon(self: Box<Self>);
}

/// A file that is being written.
pub(crate) trait Output: Write + Send {
    /// Completes it, and returns its size. It is kept, but not visible yet.
    fn finish(self: Box<Self>) -> Result<u64, StoreError>;
}

/// The right to replace and remove files.
pub(crate) trait Maintenance {
    /// Begins a change that replaces files.
    fn begin(&mut self) -> Result<Transaction, StoreError>;

    /// Removes the oldest days, as a plan for the files says.
    fn retain(&mut self, plan: &dyn Fn(&Parts) -> Plan) -> Result<Retained, StoreError>;
}
