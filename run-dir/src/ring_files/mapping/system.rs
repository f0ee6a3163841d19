//! The mappings of files, and the advice to Linux about mappings.

use super::{FileName, Mapping};
use crate::ring_files::files::allocate;
use crate::ring_files::reservation::Reservation;
use crate::session_dir::MemorySum;
pub(super) use fileguard::MappingGuard;
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_sinks::BucketWords;

/// Forked children do not inherit the mapping.
pub(super) fn keep_from_children(map: &MmapRaw) -> io::Result<()> {
    map.advise(Advice::DontFork)
}

/// Makes these bytes resident. Returns `false` if the caller has to touch them: kernels before 5.14 lack `MADV_POPULATE_WRITE`.
pub(super) fn populate(map: &MmapRaw, bytes: &Range<usize>) -> io::Result<bool> {
    match map.advise_range(Advice::PopulateWrite, bytes.start, bytes.len()) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(false),
        result => result.map(|()| true),
    }
}

/// Returns the memory of these bytes to the system. They are zero afterwards.
///
/// # Safety
///
/// They are inside the mapping, and nothing refers to them.
pub(super) unsafe fn release(map: &MmapRaw, is_file: bool, bytes: &Range<usize>) -> io::Result<()> {
    let advice = if is_file { UncheckedAdvice::Remove } else { UncheckedAdvice::DontNeed };
    // SAFETY: guaranteed by the caller.
    unsafe { map.unchecked_advise_range(advice, bytes.start, bytes.len()) }
}

/// Allocates the space of these bytes in the file of a mapping of this length.
pub(super) fn allocate_again((dir, name): &FileName, length: usize, bytes: &Range<usize>) -> io::Result<()> {
    let file = dir.dir().open_to_change(name)?;
    if file.metadata()?.len() < length as u64 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the ring file {name} was cut short")));
    }
    allocate(&file, bytes.start as u64..bytes.end as u64)
}

impl Mapping {
    /// Maps the first `len` bytes of `file`, a new file called `name`. The file has that length, its space is allocated, and it is all
    /// zero.
    pub(in crate::ring_files) fn of(
        file: &File,
        name: FileName,
        len: usize,
        reservation: Reservation,
    ) -> io::Result<Self> {
        let mapping = Self::new(MmapOptions::new().len(len).map_raw(file)?, Some(name), reservation)?;
        mapping.make_resident(0..len)?;
        Ok(mapping)
    }

    /// Maps the first `len` bytes of `file`. The file has that length, its space is allocated, and other processes map it too. The pages
    /// are made resident without a write, which could undo a write of another process.
    pub(in crate::ring_files) fn shared(file: &File, len: usize) -> io::Result<Self> {
        Self::new(MmapOptions::new().len(len).populate().map_raw(file)?, None, Reservation::of_page())
    }

    /// Handles truncation of the file from now on; `sum` counts the pages that are replaced.
    pub(in crate::ring_files) fn guard(&mut self, sum: &Arc<AtomicU64>) -> io::Result<()> {
        // SAFETY: this value owns the mapping, and `drop` unmaps it after it has dropped the guard. Rings access it through raw
        // pointers as atomics (`RingMemory`), for which all bytes are valid.
        let guarded = unsafe { MappingGuard::new(self.base.as_ptr().addr(), self.map.len(), sum)? };
        self.guarded = Some(guarded);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::PAGE;
    use super::*;
    use crate::ring_files::reservation::MemoryPolicy;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;
    use tracepoint_ring::channel::RingMemory;

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
