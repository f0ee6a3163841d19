//! Ring memory: mapped from a file, or anonymous.
#![expect(unsafe_code, reason = "maps files, and implements the unsafe trait RingMemory")]

use super::allocate;
use super::reservation::Reservation;
use crate::session_dir::{MemorySum, ProcessDir};
use fileguard::MappingGuard;
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::process;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_reader::internal::Bytes;
use tracepoint_ring::channel::RingMemory;
use tracepoint_sinks::BucketWords;

/// The smallest page size of all supported architectures.
const PAGE: usize = 4096;
/// Size of the unit of loads, in bytes.
const WORD: usize = 8;

/// The directory and the name of a mapped file.
pub(super) type FileName = (Arc<ProcessDir>, String);

/// A resident mapping. It is not inherited by forked children (`MADV_DONTFORK`).
#[derive(Debug)]
pub(super) struct Mapping {
    map: ManuallyDrop<MmapRaw>,
    base: NonNull<u8>,
    /// The process that mapped it.
    process: u32,
    /// The mapped file; `None` for anonymous memory.
    file: Option<FileName>,
    reservation: Reservation,
    /// `None` if truncation of the file is not handled.
    guarded: Option<MappingGuard>,
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, a new file called `name`. The file has that length, its space is allocated, and it is all
    /// zero.
    pub(super) fn of(file: &File, name: FileName, len: usize, reservation: Reservation) -> io::Result<Self> {
        let mapping = Self::new(MmapOptions::new().len(len).map_raw(file)?, Some(name), reservation)?;
        mapping.make_resident(0..len)?;
        Ok(mapping)
    }

    /// Maps private memory of `len` bytes.
    pub(super) fn anonymous(len: usize, reservation: Reservation) -> io::Result<Self> {
        let mapping = Self::new(MmapOptions::new().len(len).map_anon()?.into(), None, reservation)?;
        mapping.make_resident(0..len)?;
        Ok(mapping)
    }

    /// Maps the first `len` bytes of `file`. The file has that length, its space is allocated, and other processes map it too. The pages
    /// are made resident without a write, which could undo a write of another process.
    pub(super) fn shared(file: &File, len: usize) -> io::Result<Self> {
        Self::new(MmapOptions::new().len(len).populate().map_raw(file)?, None, Reservation::of_page())
    }

    fn new(map: MmapRaw, file: Option<FileName>, reservation: Reservation) -> io::Result<Self> {
        let base = NonNull::new(map.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = ManuallyDrop::new(map);
        let mapping = Self { map, base, process: process::id(), file, reservation, guarded: None };
        mapping.map.advise(Advice::DontFork)?;
        Ok(mapping)
    }

    /// Handles truncation of the file from now on; `sum` counts the pages that are replaced.
    pub(super) fn guard(&mut self, sum: &Arc<AtomicU64>) -> io::Result<()> {
        // SAFETY: this value owns the mapping, and `drop` unmaps it after it has dropped the guard. Rings access it through raw
        // pointers as atomics (`RingMemory`), for which all bytes are valid.
        let guarded = unsafe { MappingGuard::new(self.base.as_ptr().addr(), self.map.len(), sum)? };
        self.guarded = Some(guarded);
        Ok(())
    }

    /// Makes these bytes resident. They are zero, and their space is allocated if they are in a file. They are not accessed concurrently.
    fn make_resident(&self, bytes: Range<usize>) -> io::Result<()> {
        assert!(bytes.end <= self.map.len(), "inside the mapping");
        match self.map.advise_range(Advice::PopulateWrite, bytes.start, bytes.len()) {
            // Kernels before 5.14 lack `MADV_POPULATE_WRITE`.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                for offset in bytes.step_by(PAGE) {
                    // SAFETY: inside the mapping, as just asserted, and nothing else accesses the page, which is zero. Volatile, so that
                    // the store is not optimised away.
                    unsafe { self.base.as_ptr().add(offset).write_volatile(0) };
                }
                Ok(())
            }
            result => result,
        }
    }

    /// Returns the memory of these bytes to the system. They are part of a ring's packets, which nothing accesses at the moment.
    fn release(&self, bytes: &Range<usize>) -> io::Result<()> {
        assert!(bytes.end <= self.map.len(), "inside the mapping");
        let advice = if self.file.is_some() { UncheckedAdvice::Remove } else { UncheckedAdvice::DontNeed };
        // SAFETY: inside the mapping, as just asserted. The bytes are zero afterwards, which the callers expect, and nothing refers to them.
        unsafe { self.map.unchecked_advise_range(advice, bytes.start, bytes.len()) }
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

// SAFETY: `new` is given `len` bytes, mapped readable and writable, at a multiple of the page size, which is a multiple of 4096; they stay
// mapped until the value is dropped. For a ring, this process made the file for this mapping alone, under a new name, in a directory that
// belongs to this user, or it is private memory; no other code of this process maps it, and it is resident, and zero except for the identity
// page, which the parent module writes. The file of `shared` holds words, which all processes access as atomics, and for which any
// value is valid. Another process of the same user could write to a file maliciously, as it could write to this process's memory. It could
// also truncate it: that ends this process by SIGBUS or, if the mapping is guarded, makes `is_whole` false. The space is allocated
// beforehand, so no store meets a full file system.
unsafe impl RingMemory for Mapping {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn is_whole(&self) -> bool {
        self.guarded.as_ref().is_none_or(MappingGuard::is_whole)
    }

    fn give_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.release(&bytes)?;
        self.reservation.shrink(bytes.len());
        Ok(())
    }

    fn take_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.reservation.grow(bytes.len())?;
        let allocated = self.file.as_ref().map_or(Ok(()), |(dir, name)| {
            let file = dir.dir().open_to_change(name)?;
            if file.metadata()?.len() < self.map.len() as u64 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("the ring file {name} was cut short"),
                ));
            }
            allocate(&file, bytes.start as u64..bytes.end as u64)?;
            self.reservation.check_allocated()
        });
        let made = allocated.and_then(|()| self.make_resident(bytes.clone()));
        made.inspect_err(|_| {
            // A part of it may be allocated. If that cannot be released, the next attempt uses it.
            let _ = self.release(&bytes);
            self.reservation.shrink(bytes.len());
        })
    }
}

/// Accesses a mapping of a bucket's file.
impl AsRef<BucketWords> for Mapping {
    fn as_ref(&self) -> &BucketWords {
        assert!(size_of::<BucketWords>() <= self.map.len(), "inside the mapping");
        // SAFETY: inside the mapping, as just asserted, which is aligned to a page and mapped while `self` lives. The words are atomics, for
        // which any value is valid; other threads and processes access them as atomics, too.
        unsafe { self.base.cast().as_ref() }
    }
}

/// Accesses a mapping of the file with the sum of a session's rings.
impl AsRef<MemorySum> for Mapping {
    fn as_ref(&self) -> &MemorySum {
        assert!(size_of::<MemorySum>() <= self.map.len(), "inside the mapping");
        // SAFETY: as for the words of a bucket.
        unsafe { self.base.cast().as_ref() }
    }
}

/// A mapping that is also copied for snapshots.
#[derive(Debug)]
pub(super) struct SharedMapping(pub(super) Arc<Mapping>);

// SAFETY: as for the mapping itself, which lives at least as long as this value. The other owners only copy from it ([`Bytes`]).
unsafe impl RingMemory for SharedMapping {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_whole(&self) -> bool {
        self.0.is_whole()
    }

    fn give_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.0.give_back(bytes)
    }

    fn take_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.0.take_back(bytes)
    }
}

/// Copies words that other threads may be writing.
impl Bytes for Mapping {
    fn length(&self) -> io::Result<u64> {
        Ok(self.map.len() as u64)
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len().next_multiple_of(WORD)).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > self.map.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !start.is_multiple_of(WORD) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (index, bytes) in buffer.chunks_mut(WORD).enumerate() {
            // SAFETY: an aligned word inside the mapping, as just checked. What publishes a ring's contents, and the counters, are stores of
            // atomics. The bytes of a record are stored as plain bytes, and are either committed before this load (C1), or in a slot that is
            // being reused: the reader then finds the magic or the number of the packet changed (C2), and drops the copy, as every reader
            // of a seqlock does.
            let word = unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(start + index * WORD).cast()) };
            // C3: Acquire: before all later loads of the reader; pairs with the stores of C1, C2, R2 and H1.
            let word = u64::from_le(word.load(Ordering::Acquire)).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::reservation::MemoryPolicy;
    use super::*;
    use std::os::unix::fs::FileExt;

    /// Counts the bytes.
    #[derive(Debug, Default)]
    struct CountingPolicy(AtomicU64);

    impl MemoryPolicy for CountingPolicy {
        fn take(&self, bytes: u64) -> io::Result<()> {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn mapping(file: &File, pages: usize) -> io::Result<Mapping> {
        file.set_len((pages * PAGE) as u64)?;
        let map = MmapOptions::new().len(pages * PAGE).map_raw(file)?;
        let mapping = Mapping::new(map, None, Reservation::of_page())?;
        mapping.make_resident(0..pages * PAGE)?;
        Ok(mapping)
    }

    #[test]
    fn bytes_written_to_the_mapping_are_in_the_file() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        let mut mapping = mapping(&file, 3)?;
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
        mapping(&file, 1).expect("a mapping").write(4095, b"ab");
    }

    #[test]
    fn memory_that_is_given_back_is_not_resident_and_zero_when_it_is_taken_back() -> io::Result<()> {
        let memory = Arc::new(CountingPolicy::default());
        let used = || memory.0.load(Ordering::Relaxed);
        let mut mapping = Mapping::anonymous(4 * PAGE, Reservation::new(memory.clone(), 4 * PAGE)?)?;
        mapping.write(0, b"stays");
        mapping.write(PAGE, b"goes");
        mapping.give_back(PAGE..4 * PAGE)?;
        assert_eq!(used(), PAGE as u64);
        mapping.take_back(PAGE..4 * PAGE)?;
        assert_eq!(used(), 4 * PAGE as u64);
        // SAFETY: inside the mapping, to which nothing writes any more.
        let bytes = unsafe { std::slice::from_raw_parts(mapping.base().as_ptr(), 4 * PAGE) };
        assert_eq!((&bytes[..5], &bytes[PAGE..PAGE + 4]), (&b"stays"[..], &[0; 4][..]));
        Ok(())
    }
}
