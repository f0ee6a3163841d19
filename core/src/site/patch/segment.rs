//! The executable segments of a linked object. Its entries may only point into them.

use super::machine::page_size;
use std::ffi::{c_int, c_void};

/// An executable segment of a loaded object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Segment {
    start: usize,
    end: usize,
    /// The segment's `PF_…` flags in the file.
    flags: u32,
}

/// The executable segments of one object. Linkers usually make one; sites in segments beyond the fourth count as foreign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Segments([Segment; 4]);

impl Segment {
    /// Maximum number of pages that it extends over.
    pub(super) fn pages(self) -> usize {
        (self.end - self.start).div_ceil(page_size()) + 1
    }

    /// The protection with which the dynamic linker mapped it, as flags of `mprotect`.
    pub(super) const fn protection(self) -> c_int {
        let mut protection = 0;
        if self.flags & libc::PF_R != 0 {
            protection |= libc::PROT_READ;
        }
        if self.flags & libc::PF_W != 0 {
            protection |= libc::PROT_WRITE;
        }
        if self.flags & libc::PF_X != 0 {
            protection |= libc::PROT_EXEC;
        }
        protection
    }
}

impl Segments {
    /// The segments of an object whose code was not found.
    const NONE: Self = Self([Segment { start: 0, end: 0, flags: 0 }; 4]);

    /// The segments of the loaded object that contains the address `inside`.
    ///
    /// Calls the dynamic linker, which takes its own lock: the caller must not hold the update lock.
    pub(super) fn of_object_with(inside: usize) -> Self {
        let mut search = Search { inside, found: Self::NONE };
        // SAFETY: `collect` gets the address of `search`, which is alive and has no other user until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut search).cast()) };
        search.found
    }

    pub(super) fn contains(&self, segment: Segment) -> bool {
        self.0.contains(&segment)
    }

    /// The addresses of the first byte and of the byte behind the last; `None` if the code was not found.
    pub(super) fn bounds(&self) -> Option<(usize, usize)> {
        let found = || self.0.iter().filter(|segment| segment.end > segment.start);
        Some((found().map(|segment| segment.start).min()?, found().map(|segment| segment.end).max()?))
    }

    pub(super) fn is_known(&self) -> bool {
        *self != Self::NONE
    }

    /// The segment that contains the `length` bytes from `address`.
    pub(super) fn around(&self, address: usize, length: usize) -> Option<Segment> {
        let end = address.checked_add(length)?;
        self.0.iter().copied().find(|segment| segment.start <= address && end <= segment.end)
    }
}

struct Search {
    inside: usize,
    found: Segments,
}

/// Called for each loaded object; collects the segments of the object that contains `inside`, and ends the iteration there by
/// returning 1.
unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a description that is alive during the call, with `dlpi_phnum` headers, and `of_object_with`
    // passes its search.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loaded = || {
        headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            Segment { start, end: start.wrapping_add(header.p_memsz as usize), flags: header.p_flags }
        })
    };
    if !loaded().any(|segment| (segment.start..segment.end).contains(&search.inside)) {
        return 0;
    }
    let executable = loaded().filter(|segment| segment.flags & libc::PF_X != 0 && segment.flags & libc::PF_R != 0);
    for (place, segment) in search.found.0.iter_mut().zip(executable) {
        *place = segment;
    }
    1
}
