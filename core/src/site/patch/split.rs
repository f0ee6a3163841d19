//! Gives the pages to be patched separate mappings, so that a `fork` stays cheap.
//!
//! A patched page is a private copy. The kernel records permanently, for a complete mapping, that it has private copies; from then on each `fork`
//! copies the page table entries of all its pages. For code that is unmodified it would skip them, because the child reads it from the file. With 12
//! MB of code this costs 110 µs per `fork`, however few pages were patched. `MADV_RANDOM`, which affects only reading from the file, makes the kernel
//! split a mapping, because the two parts differ in this flag.
//!
//! Each range needs two more mappings, which cost a `fork` some µs each. So neighbours share a range, and a program has at most [`MAX_RANGES`] ranges
//! with [`MAX_PAGES`] pages in total: sites beyond these limits, and sites that are spread over a complete segment, are patched inside larger
//! mappings.

use super::entry::Site;
use super::machine::page_size;
use super::segment::{Segment, Segments};
use super::writable;
use std::ops::Range;
use std::sync::PoisonError;
use tracepoint_ring::primitive::Mutex;

/// Maximum number of ranges with separate mappings.
const MAX_RANGES: usize = 16;
/// Maximum distance, in pages, between a page of a range and the next patched one. Copying the entries of this many pages costs a `fork`
/// about as much as the mappings of another range.
const MAX_GAP: usize = 64;
/// Maximum number of pages of all ranges in total: the kernel reads pages of a range one by one if they are not in memory.
const MAX_PAGES: usize = 2048;

/// The addresses of ranges that were split off. All functions here run under the update lock, so this mutex is never contended.
static RANGES: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

fn page(site: &Site<'_>) -> usize {
    site.switched_at() / page_size()
}

/// Splits off the pages of these sites, which are sorted by address. A failure (too many mappings) only makes a `fork` slower.
pub(super) fn split_off(sites: &[Site<'_>]) {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_near = |a: &Site<'_>, b: &Site<'_>| a.segment() == b.segment() && page(b) - page(a) <= MAX_GAP;
    for group in sites.chunk_by(is_near) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let pages = first.segment().map_or(0, Segment::pages);
        // A seccomp filter may kill the process for this call.
        let split = split(page(first) * page_size()..(page(last) + 1) * page_size(), pages, &ranges);
        let Some(split) = split.filter(|_| !writable::has_seccomp_filter()) else { continue };
        let range = &split[0];
        // SAFETY: pages of one segment of this program's code, which is loaded. The advice changes neither their contents nor their
        // protection.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(range.start), range.len(), libc::MADV_RANDOM) };
        *ranges = split;
    }
}

/// Adds a range, in a segment of `pages` pages, to the ranges; it is merged with ranges that it overlaps. `None` if it is split off already, or
/// there is no benefit.
fn split(mut range: Range<usize>, pages: usize, ranges: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
    let (overlapping, others): (Vec<_>, Vec<_>) =
        ranges.iter().cloned().partition(|known| known.start < range.end && range.start < known.end);
    for known in &overlapping {
        range = range.start.min(known.start)..range.end.max(known.end);
    }
    let is_new = !overlapping.contains(&range) && others.len() < MAX_RANGES;
    let is_won = range.len() / page_size() + MAX_GAP < pages;
    let all: Vec<_> = std::iter::once(range).chain(others).collect();
    let fits = all.iter().map(|range| range.len() / page_size()).sum::<usize>() <= MAX_PAGES;
    (is_new && is_won && fits).then_some(all)
}

/// Forgets the ranges of an object that is being unloaded.
pub(super) fn forget(code: &Segments) {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    ranges.retain(|range| code.around(range.start, 1).is_none());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(range: Range<usize>) -> Range<usize> {
        range.start * page_size()..range.end * page_size()
    }

    #[test]
    fn ranges_are_few_and_small_and_win_something() {
        let first = [pages(100..104), pages(300..301)];
        assert_eq!(split(pages(101..103), 5000, &first), None, "contained");
        let larger = [pages(99..110), pages(300..301)];
        assert_eq!(split(pages(99..110), 5000, &first).as_deref(), Some(&larger[..]));
        let both = [pages(100..301)];
        assert_eq!(split(pages(103..301), 5000, &first).as_deref(), Some(&both[..]));
        assert_eq!(split(pages(0..150), 200, &[]), None, "the whole segment");
        assert_eq!(split(pages(400..400 + MAX_PAGES), 5000, &first), None, "too many pages");
        let many: Vec<_> = (0..MAX_RANGES).map(|n| pages(100 * n..100 * n + 1)).collect();
        assert_eq!(split(pages(4000..4001), 5000, &many), None, "too many ranges");
        assert_eq!(split(pages(0..101), 5000, &many).map(|ranges| ranges.len()), Some(MAX_RANGES - 1));
    }
}
