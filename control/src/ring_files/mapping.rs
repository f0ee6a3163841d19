//! A file as memory.
#![expect(unsafe_code, reason = "that mapped bytes are as RingMemory promises is for us to say, not for the compiler")]

use mapguard::Guarded;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::process;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_core::channel::RingMemory;

/// The smallest page of all machines.
const PAGE: usize = 4096;

/// A file, mapped shared and resident. A child that is forked does not have it.
#[derive(Debug)]
pub(super) struct Mapping {
    map: ManuallyDrop<MmapRaw>,
    base: NonNull<u8>,
    /// The process that mapped it.
    process: u32,
    /// `None` if it must not be cut off.
    guarded: Option<Guarded>,
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which is new: it has that length, its room is taken, and all of it is zero.
    pub(super) fn of(file: &File, len: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(len).map_raw(file)?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { map: ManuallyDrop::new(map), base, process: process::id(), guarded: None };
        mapping.map.advise(Advice::DontFork)?;
        mapping.make_resident()?;
        Ok(mapping)
    }

    /// From here on the file may be cut off; how many pages were replaced then is added to `sum`.
    pub(super) fn guard(&mut self, sum: &Arc<AtomicU64>) -> io::Result<()> {
        // SAFETY: a mapping of our own, which `drop` unmaps after it has dropped the guard. Rings refer to it by raw pointers and as
        // atomics (`RingMemory`), to whom any bytes are valid.
        let guarded = unsafe { Guarded::new(self.base.as_ptr().addr(), self.map.len(), sum)? };
        self.guarded = Some(guarded);
        Ok(())
    }

    fn make_resident(&self) -> io::Result<()> {
        match self.map.advise(Advice::PopulateWrite) {
            // Kernels before 5.14.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                for offset in (0..self.map.len()).step_by(PAGE) {
                    // SAFETY: inside the mapping, which is not handed out yet. The file has room for the page, and is zero there.
                    // Volatile, so that the store is not left out.
                    unsafe { self.base.as_ptr().add(offset).write_volatile(0) };
                }
                Ok(())
            }
            result => result,
        }
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Panics
    ///
    /// If they do not fit there.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.map.len()), "inside the mapping");
        // SAFETY: inside the mapping, as was just asserted; `bytes` are not, because nothing refers to the mapping but raw
        // pointers; and `self` is borrowed exclusively, so that it has not been handed to a ring.
        unsafe { self.base.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Guarded until nobody uses it; not while something else may be mapped there.
        self.guarded = None;
        // A child has a hole there, or by now something else of its own, which is not ours to unmap.
        if process::id() == self.process {
            // SAFETY: dropped here only, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.map) };
        }
    }
}

// SAFETY: plain bytes of the process's address space, which belong to no thread. The pointer is that of `map`, which is Send
// itself.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference address and length can be read, and nothing else.
unsafe impl Sync for Mapping {}

// SAFETY: `of` mapped `len` bytes, readable and writable, at a multiple of the page size, which is one of 4096; they stay
// mapped until the value is dropped. The file was made by this process for this mapping alone, under a name that did not exist,
// in a directory that is this user's only; nobody else here has it open or mapped. Other processes of the user could write to
// it if they wanted to do harm, as they could write to this process's memory, or cut it off, which ends this process by a signal,
// or, where the mapping is guarded, is told by `is_whole`. Its room was taken beforehand, so
// that no store finds the file system full. It is zero but for the identity, the one thing that is written, by the module
// above, and resident.
unsafe impl RingMemory for Mapping {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn is_whole(&self) -> bool {
        self.guarded.as_ref().is_none_or(Guarded::is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_written_is_in_the_file() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        file.set_len(3 * 4096)?;
        let mut mapping = Mapping::of(&file, 3 * 4096)?;
        assert_eq!((mapping.len(), mapping.base().as_ptr().addr() % PAGE), (3 * 4096, 0));
        mapping.write(3 * 4096 - 4, b"last");
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 3 * 4096 - 4)?;
        assert_eq!(&bytes, b"last");
        Ok(())
    }

    #[test]
    #[should_panic(expected = "inside the mapping")]
    fn nothing_is_written_beyond_it() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a length");
        Mapping::of(&file, 4096).expect("a mapping").write(4095, b"ab");
    }
}
