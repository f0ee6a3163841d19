//! The storage of a store: a [directory](crate::local), or [objects](crate::object) in S3.
//!
//! Paths are relative to the store. A file whose name ends with `.parquet` is complete or absent for every reader. A change of several files
//! is atomic, as far as the backend permits.

use std::fmt::Debug;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;

use crate::error::StoreError;
use crate::files::{PartFile, Parts};
use crate::plan::{Plan, RetentionSummary};

/// The directory of all files that are not data.
pub(crate) const OWN: &str = ".tracepoint";

/// The contents of a Parquet file.
pub(crate) enum Contents {
    File(File),
    Bytes(Bytes),
}

/// The storage of a store.
pub(crate) trait Backend: Debug + Send + Sync {
    /// Returns whether there are files outside [`OWN`].
    fn has_others(&self) -> Result<bool, StoreError>;

    /// Prepares a new store for [`create`](Self::create).
    fn prepare(&self) -> Result<(), StoreError>;

    /// Reads a small file in [`OWN`], if it exists.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError>;

    /// Atomically creates a small file in [`OWN`] with its contents; returns `false` if it exists.
    fn create(&self, path: &Path, contents: &[u8]) -> Result<bool, StoreError>;

    /// Completes changes that were committed by processes that have died since.
    fn recover(&self) -> Result<(), StoreError>;

    /// Returns whether the store has a trace.
    fn has_trace(&self, trace: &str) -> Result<bool, StoreError>;

    /// Starts a change that adds files.
    fn begin(&self) -> Result<Transaction, StoreError>;

    /// Lists the Parquet files.
    fn parts(&self) -> Result<Parts, StoreError>;

    /// Reads a Parquet file. The error is [`NotFound`](std::io::ErrorKind::NotFound) if it has been removed since.
    fn contents(&self, file: &PartFile) -> Result<Contents, StoreError>;

    /// Acquires the exclusive right to replace and remove files, waiting for other holders. Drop the result to release it.
    fn maintain(&self) -> Result<Box<dyn Maintenance + '_>, StoreError>;

    /// The object store, and the store's prefix in it; `None` for a directory.
    fn objects(&self) -> Option<Objects> {
        None
    }
}

/// An object store, and the prefix of a store in it.
pub type Objects = (Arc<dyn ObjectStore>, object_store::path::Path);

/// A change of a store.
pub(crate) type Transaction = Box<dyn Change>;

/// A change of a store. Nothing of it is visible before it is committed.
pub(crate) trait Change: Send {
    /// Creates a file in a partition. Its name is unique, and ends with `extension`.
    fn add(&mut self, partition: &Path, extension: &str) -> Result<Box<dyn Output>, StoreError>;

    /// Marks a file for removal.
    fn remove(&mut self, path: PathBuf);

    /// Adds the files, and registers these traces in the store, each with its last day, which may be empty. After [`StoreError::AlreadyStored`]
    /// nothing has changed. After any other error nothing has changed, or the next process that opens the store completes the change.
    fn commit(self: Box<Self>, traces: &[(String, String)]) -> Result<(), StoreError>;

    /// Adds and removes the files. Changes nothing and returns `false` if a file to be removed no longer exists.
    fn replace(self: Box<Self>) -> Result<bool, StoreError>;

    /// Deletes the files written so far. Files that cannot be deleted now are deleted later.
    fn abandon(self: Box<Self>);
}

/// A file that is being written.
pub(crate) trait Output: Write + Send {
    /// Completes the file, and returns its size in bytes. The file persists, but is not visible yet.
    fn finish(self: Box<Self>) -> Result<u64, StoreError>;
}

/// The exclusive right to replace and remove files.
pub(crate) trait Maintenance {
    /// Starts a change that replaces files.
    fn begin(&mut self) -> Result<Transaction, StoreError>;

    /// Removes the oldest days, according to `plan`.
    fn retain(&mut self, plan: &dyn Fn(&Parts) -> Plan) -> Result<RetentionSummary, StoreError>;
}
