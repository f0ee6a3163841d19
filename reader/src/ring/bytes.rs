//! The bytes of a ring: a file that another process may be writing, or memory.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes at offsets, as they are at the time of the call. A file is not mapped: if it is cut short, this process must not get a signal.
pub(crate) trait Bytes: fmt::Debug + Send {
    fn length(&self) -> io::Result<u64>;

    /// Fills all of `buffer` with the bytes from `offset` on.
    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Bytes for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl Bytes for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(buffer.len())?));
        let bytes = range.and_then(|range| self.get(range)).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
