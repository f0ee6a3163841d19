//! Gives the pages that will be patched mappings of their own, so that a `fork` stays cheap.
//!
//! A patched page is a private copy. The kernel notes for a whole mapping that it has private copies, and for good; from then on each
//! `fork` copies the entries of all its pages, while it leaves out code that is as in the file, which the child reads from there. With
//! 12 MB of code that is 110 µs for each `fork`, however few pages were patched. `MADV_RANDOM`, which concerns the reading from the file
//! alone, makes the kernel split a mapping, because the two parts differ in this flag.
//!
//! Each range takes two further mappings, which cost a `fork` some µs each. So neighbours share a range, and a program has [`MAX_RANGES`]:
//! where sites are spread over more of its code, the remaining ones are patched within larger mappings.

use super::entry::Site;
use super::segment::{PAGE, Segments};
use super::writable;
use std::ops::Range;
use std::sync::PoisonError;
use tracepoint_ring::primitive::Mutex;

/// The largest number of ranges with mappings of their own.
const MAX_RANGES: usize = 16;
/// The largest distance, in pages, between a page of a range and the next one that is patched. The entries of so many pages cost a `fork`
/// about as much as the mappings of another range.
const MAX_GAP: usize = 64;

/// The addresses of ranges that were split off. All functions here run under the update lock, so that this mutex is never contended.
static RANGES: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

fn page(site: &Site<'_>) -> usize {
    site.opcode() / PAGE
}

/// Splits off the pages of these sites, which are sorted by address. A failure (too many mappings) makes a `fork` slower, and nothing else.
pub(super) fn split_off(sites: &[Site<'_>]) {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_near = |a: &Site<'_>, b: &Site<'_>| a.segment() == b.segment() && page(b) - page(a) <= MAX_GAP;
    for group in sites.chunk_by(is_near) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = page(first) * PAGE..(page(last) + 1) * PAGE;
        let is_split = ranges.iter().any(|known| known.start <= range.start && range.end <= known.end);
        // A filter may kill the process for the call.
        if is_split || ranges.len() == MAX_RANGES || !writable::has_no_seccomp_filter() {
            continue;
        }
        // SAFETY: pages of one segment of this program's code, which is loaded. The advice changes neither their contents nor their
        // protection.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(range.start), range.len(), libc::MADV_RANDOM) };
        ranges.push(range);
    }
}

/// Forgets the ranges of an object that is being unloaded.
pub(super) fn forget(code: &Segments) {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    ranges.retain(|range| code.around(range.start, 1).is_none());
}
