//! The counterpart on systems other than Linux, where no directory is shared by processes: nothing has the type [`PrivateDir`].

#[path = "../private_dir/error.rs"]
mod error;

pub use error::DirError;
use fileguard::CheckedFd;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::Path;

/// A directory of this user, which does not exist here.
#[derive(Debug)]
pub struct PrivateDir(Infallible);

impl PrivateDir {
    /// Refuses, as all functions that would return one.
    pub fn at(path: &Path) -> Result<Self, DirError> {
        Err(not_here(path))
    }

    /// Refuses, as all functions that would return one.
    pub fn open(path: &Path) -> Result<Self, DirError> {
        Self::at(path)
    }

    /// Returns the result of any operation: none takes place.
    pub(crate) const fn none<T>(&self) -> T {
        match self.0 {}
    }

    /// Is not reached.
    pub fn subdir(&self, _: &str) -> Result<Self, DirError> {
        self.none()
    }

    /// Is not reached.
    pub fn failed(&self, _: &'static str, _: &str, _: io::Error) -> DirError {
        self.none()
    }

    /// Is not reached.
    pub fn path(&self) -> &Path {
        self.none()
    }

    /// Is not reached.
    pub fn names(&self) -> io::Result<Vec<String>> {
        self.none()
    }

    /// Is not reached.
    pub fn create_file(&self, _: &str, _: u64) -> io::Result<CheckedFd<File>> {
        self.none()
    }

    /// Is not reached.
    pub fn open_file(&self, _: &str) -> io::Result<CheckedFd<File>> {
        self.none()
    }

    /// Is not reached.
    pub fn touch_file(&self, _: &str) {
        self.none()
    }

    /// Is not reached.
    pub fn put_whole(&self, _: &str, _: &[u8]) -> io::Result<()> {
        self.none()
    }

    /// Is not reached.
    pub fn replace(&self, _: &str, _: &[u8]) -> io::Result<()> {
        self.none()
    }

    /// Is not reached.
    pub fn read_file(&self, _: &str, _: u64) -> io::Result<Vec<u8>> {
        self.none()
    }

    /// Is not reached.
    pub fn remove_file(&self, _: &str) {
        self.none()
    }

    /// Is not reached.
    pub fn remove_empty(&self, _: &str) {
        self.none()
    }
}

/// Returns whether an operation failed because the file system is full or a quota is used up.
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the error of everything that needs a directory shared by processes.
pub(crate) fn not_here(path: &Path) -> DirError {
    let source = io::Error::new(io::ErrorKind::Unsupported, "not on this system");
    DirError::Io { action: "share", path: path.to_owned(), source }
}
