//! Ring memory mapped from a file.
#![expect(unsafe_code, reason = "maps files, and implements the unsafe trait RingMemory")]

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

/// The smallest page size of all supported architectures.
const PAGE: usize = 4096;

/// A shared, resident file mapping. It is not inherited by forked children (`MADV_DONTFORK`).
#[derive(Debug)]
pub(super) struct Mapping {
    map: ManuallyDrop<MmapRaw>,
    base: NonNull<u8>,
    /// The process that mapped it.
    process: u32,
    /// `None` if truncation of the file is not handled.
    guarded: Option<Guarded>,
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which has that length, and whose space is allocated. That of a ring is new, and all zero.
    pub(super) fn of(file: &File, len: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(len).map_raw(file)?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { map: ManuallyDrop::new(map), base, process: process::id(), guarded: None };
        mapping.map.advise(Advice::DontFork)?;
        mapping.make_resident()?;
        Ok(mapping)
    }

    /// Handles truncation of the file from now on; `sum` counts the pages that are replaced.
    pub(super) fn guard(&mut self, sum: &Arc<AtomicU64>) -> io::Result<()> {
        // SAFETY: this value owns the mapping, and `drop` unmaps it after it has dropped the guard. Rings access it through raw
        // pointers as atomics (`RingMemory`), for which all bytes are valid.
        let guarded = unsafe { Guarded::new(self.base.as_ptr().addr(), self.map.len(), sum)? };
        self.guarded = Some(guarded);
        Ok(())
    }

    fn make_resident(&self) -> io::Result<()> {
        match self.map.advise(Advice::PopulateWrite) {
            // Kernels before 5.14 lack `MADV_POPULATE_WRITE`.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                for offset in (0..self.map.len()).step_by(PAGE) {
                    // SAFETY: inside the mapping, which is not handed out yet. The space is allocated, and the page is zero.
                    // Volatile, so that the store is not optimised away.
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
    /// If they do not fit into the mapping.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.map.len()), "inside the mapping");
        // SAFETY: inside the mapping, as just asserted. `bytes` does not overlap it: only raw pointers refer to the mapping. `self`
        // is borrowed exclusively, so no ring has it yet.
        unsafe { self.base.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The guard is dropped before the unmapping: afterwards another mapping may be placed at these addresses.
        self.guarded = None;
        // A forked child has no mapping at these addresses, or by now an unrelated one, and must not unmap it.
        if process::id() == self.process {
            // SAFETY: dropped only here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.map) };
        }
    }
}

// SAFETY: plain bytes of the process's address space, not bound to a thread. The pointer is that of `map`, which is Send itself.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives access to the address and the length only.
unsafe impl Sync for Mapping {}

// SAFETY: `of` mapped `len` bytes, readable and writable, at a multiple of the page size, which is a multiple of 4096; they stay
// mapped until the value is dropped. This process made the file for this mapping alone, under a new name, in a directory that
// belongs to this user; no other code of this process opens or maps it. Another process of the same user could write to it
// maliciously, as it could write to this process's memory. It could also truncate it: that ends this process by SIGBUS or, if
// the mapping is guarded, makes `is_whole` false. The space is allocated beforehand, so no store meets a full file system. The
// memory is resident, and zero except for the identity page, which the parent module writes.
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
    fn bytes_written_to_the_mapping_are_in_the_file() -> io::Result<()> {
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
    fn writes_beyond_the_mapping_are_refused() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a length");
        Mapping::of(&file, 4096).expect("a mapping").write(4095, b"ab");
    }
}
