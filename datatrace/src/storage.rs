//! The storage of a dt file's bytes.

mod file;
#[cfg_attr(not(target_os = "linux"), path = "storage/no_header_page.rs")]
mod header_page;

pub use file::FileStorage;

use std::io;
use std::path::Path;

/// Bytes at offsets. The writer calls the methods in the order of its writes; a failure between any two calls leaves a readable file.
///
/// A header (20 bytes at offset 0) must be written atomically. Longer writes may be interrupted at any multiple of 4 bytes.
pub trait Storage {
    /// Writes all of `bytes` at `offset`, and extends the file if necessary.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Sets the length of the file: truncates it, or extends it by zeros.
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// Extends the file to `length` bytes by zeros, and reserves the space on the medium if the system supports that.
    fn allocate(&mut self, length: u64) -> io::Result<()> {
        self.set_length(length)
    }

    /// The path for messages.
    fn path(&self) -> &Path;
}
