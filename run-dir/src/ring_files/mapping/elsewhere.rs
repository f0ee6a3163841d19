//! The counterpart on systems other than Linux, where only private memory is mapped.

use super::FileName;
use memmap2::MmapRaw;
use std::convert::Infallible;
use std::io;
use std::ops::Range;

/// No mapping is guarded.
#[derive(Debug)]
pub(super) struct MappingGuard(Infallible);

impl MappingGuard {
    pub(super) const fn is_whole(&self) -> bool {
        match self.0 {}
    }
}

/// Does nothing: a forked child has a copy of the memory.
#[expect(clippy::unnecessary_wraps, reason = "the counterpart may fail")]
pub(super) const fn keep_from_children(_map: &MmapRaw) -> io::Result<()> {
    Ok(())
}

/// Returns `false`: the caller has to touch the bytes.
#[expect(clippy::unnecessary_wraps, reason = "the counterpart may fail")]
pub(super) const fn populate(_map: &MmapRaw, _bytes: &Range<usize>) -> io::Result<bool> {
    Ok(false)
}

/// Makes these bytes zero; their memory stays with this process.
///
/// # Safety
///
/// They are inside the mapping, and nothing refers to them.
#[expect(clippy::unnecessary_wraps, reason = "the counterpart may fail")]
pub(super) unsafe fn release(map: &MmapRaw, _is_file: bool, bytes: &Range<usize>) -> io::Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { map.as_mut_ptr().add(bytes.start).write_bytes(0, bytes.len()) };
    Ok(())
}

pub(super) fn allocate_again((dir, _): &FileName, _length: usize, _bytes: &Range<usize>) -> io::Result<()> {
    dir.none()
}
