//! The counterpart of [`descriptor`](crate::descriptor) on systems other than Linux, where descriptors are used as they are: the library does not
//! detect there that the program has closed one.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// A type that owns a descriptor.
pub trait Descriptor {}

impl<T> Descriptor for T {}

/// A descriptor of the library.
#[derive(Debug)]
pub struct GuardedFd<T: Descriptor>(T);

impl<T: Descriptor> GuardedFd<T> {
    /// Keeps the descriptor of `held`.
    ///
    /// # Errors
    ///
    /// None here.
    pub const fn new(held: T) -> io::Result<Self> {
        Ok(Self(held))
    }

    /// Returns `true`: closed descriptors are not detected here.
    pub const fn is_open(&self) -> bool {
        true
    }

    /// Returns the owner of the descriptor.
    ///
    /// # Errors
    ///
    /// None here.
    pub const fn get(&self) -> io::Result<&T> {
        Ok(&self.0)
    }
}

/// An open descriptor, for immediate use.
#[derive(Debug)]
pub struct CheckedFd<T: Descriptor>(Arc<GuardedFd<T>>);

impl<T: Descriptor> CheckedFd<T> {
    /// Wraps a descriptor that has just been opened.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn of(held: T) -> io::Result<Self> {
        Ok(Self(Arc::new(GuardedFd(held))))
    }

    /// Keeps the descriptor for longer.
    pub fn keep(self) -> Arc<GuardedFd<T>> {
        self.0
    }
}

impl<T: Descriptor> Deref for CheckedFd<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

/// Wakes a thread that sleeps in `poll`: none does here.
#[derive(Debug)]
pub struct Waker(Infallible);

impl Waker {
    /// Is not reached.
    pub const fn wake(&self) {
        match self.0 {}
    }
}

/// Calls `call` once.
///
/// # Errors
///
/// The errors of the call.
pub fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    call()
}

/// Returns `false`: closed descriptors are not detected here.
pub const fn is_closed(_error: &io::Error) -> bool {
    false
}

/// Returns the remedy for a lack of descriptors, of which Rust's errors say nothing here, or of memory, as the end of a message.
pub fn shortage_mend(error: &io::Error) -> Option<&'static str> {
    (error.kind() == io::ErrorKind::OutOfMemory).then_some("; free memory, or raise the limit on it")
}

/// Returns the contents of a regular file that is not a symbolic link.
///
/// # Errors
///
/// If it cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open_regular(path.as_ref())?, &mut bytes)?;
    Ok(bytes)
}

/// Returns the contents of a text file that is not a symbolic link.
///
/// # Errors
///
/// If it cannot be read, or is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn open_regular(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}
