//! Where a dt file's bytes go.

mod file;
mod header_page;

pub use file::FileStorage;

use std::io;
use std::path::Path;

/// Bytes at offsets. The writer's order of writes is the order of calls of this trait; a failure between any two of them leaves a
/// readable file.
///
/// A header (20 bytes at offset 0) has to be written as one; longer writes may be cut anywhere, on whole words of 4 bytes.
pub trait Storage {
    /// Writes all of `bytes` at `offset`, and makes the file longer if need be.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes the file `length` bytes long: cut, or longer by zeros.
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// Makes the file `length` bytes long, by zeros, and keeps the room on the medium where that can be asked for.
    fn allocate(&mut self, length: u64) -> io::Result<()> {
        self.set_length(length)
    }

    /// What errors call it.
    fn path(&self) -> &Path;
}
