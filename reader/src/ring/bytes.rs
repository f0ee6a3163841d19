//! The bytes of a ring: a file that another process may be writing, or memory that threads of this process may be writing.

use super::call_order::end_call;
use fileguard::FileExt;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Bytes at offsets, in their state at the time of the call. A file is not mapped, because access to a truncated mapping would raise a signal.
///
/// An implementation must load the bytes of one call before those of the next call (C3 in `docs/ordering.md`), and each aligned word at once. The
/// words of one call may be loaded in any order.
pub trait Bytes: fmt::Debug + Send {
    /// The number of bytes.
    ///
    /// # Errors
    /// The system's error.
    fn length(&self) -> io::Result<u64>;

    /// Fills all of `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if there are fewer; or the system's error.
    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Bytes for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)?;
        end_call();
        Ok(())
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

impl<B: Bytes + Sync + ?Sized> Bytes for Arc<B> {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).fill(buffer, offset)
    }
}
