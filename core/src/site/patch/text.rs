//! Writes to the program's own code.
//!
//! The first method is `/proc/self/mem`, which writes to pages that are not writable and leaves their protection unchanged. It is opened
//! for each batch, because a descriptor inherited by a forked child would write into the parent. If it is refused (the process is
//! not dumpable, or the kernel forbids it), the second method [makes the pages writable](super::writable) for a moment. Sites that one
//! method cannot write are tried with the other, page by page, so that one failure does not affect other sites.
//!
//! On x86-64 a batch writes one run per page, from the first site of the page to the last: the bytes between sites are read and written back.
//! A byte in between may be changed concurrently by a debugger or a uprobe, which write an `int3`. If the run contains an `int3`, or has
//! changed when it is about to be written, the sites of that page are written byte by byte. (A breakpoint that is set during the system
//! call that writes the run is lost, because no check can exclude a change between the last read and the write. The same is true for a
//! breakpoint on the opcode of a site.)
//!
//! Padding between functions, which some linkers fill with `int3`, cannot be distinguished from breakpoints, so such pages are also written byte
//! by byte. On aarch64 all sites are written word by word. If many such sites are close together, the pages are made writable with one call
//! instead, which costs as much as about twenty single writes. This is not done in a process with a seccomp filter, because the filter may kill
//! the process for that call, and `/proc/self/mem` already works.

use super::entry::Site;
use super::machine::{BREAKPOINT, Form, LENGTH, discard_translations, page_size};
use super::proc_mem::{FirstError, ProcMem};
use super::{split, writable};
use crate::site::SiteSwitchError;
use std::cell::LazyCell;

/// Maximum number of pages that a group of neighbouring sites spans.
const MAX_GROUP_PAGES: usize = 64;
/// Maximum distance, in pages, between one site of a group and the next.
const MAX_PAGE_GAP: usize = 2;
/// Number of single writes at which `mprotect` becomes cheaper. (Measured on x86-64: 1.5 µs per byte; 28 µs for two calls of `mprotect`, while
/// another processor runs the program.)
const MPROTECT_THRESHOLD: usize = 24;

/// Writes the form to as many of these sites as possible. The sites are sorted by address.
///
/// # Errors
///
/// If a site cannot be written. A site that has become foreign is skipped, which is not an error.
pub(super) fn write(sites: &[Site<'_>], form: Form) -> Result<(), SiteSwitchError> {
    if sites.is_empty() {
        return Ok(());
    }
    writable::restore_left();
    split::split_off(sites);
    let (mut memory, mut mprotect) = (ProcMem::default(), FirstError::default());
    by_proc_mem(&mut memory, sites, form);
    let left: Vec<Site<'_>> = sites.iter().filter(|site| needs_write(**site, form)).copied().collect();
    by_mprotect(&left, form, &mut mprotect);
    one_by_one(&mut memory, &left, form);
    groups(sites).for_each(discard);
    if !left.iter().any(|site| needs_write(*site, form)) {
        return Ok(());
    }
    Err(SiteSwitchError { proc_mem: std::mem::take(&mut memory.error).text(), mprotect: mprotect.text() })
}

/// Writes whole instructions to sites, sorted by address, that no thread executes. A site that cannot be written keeps its instruction.
pub(super) fn replace(sites: &[(Site<'_>, [u8; LENGTH])]) {
    let mut memory = ProcMem::default();
    for (site, instruction) in sites {
        memory.write(instruction, site.bounds().0);
    }
    // A write may also have ended at the end of a page.
    for (site, instruction) in sites.iter().filter(|(site, instruction)| !site.has(*instruction)) {
        let _ = writable::replace(*site, *instruction);
    }
    for (site, _) in sites {
        discard(&[*site]);
    }
}

/// Returns whether the site has the other form, and is not foreign.
fn needs_write(site: Site<'_>, form: Form) -> bool {
    site.form().is_some_and(|is| is != form)
}

fn pages<'s, 'o>(sites: &'s [Site<'o>]) -> impl Iterator<Item = &'s [Site<'o>]> {
    let page = page_size();
    sites.chunk_by(move |a, b| a.switched_at() / page == b.switched_at() / page)
}

/// Groups of neighbours within one segment.
fn groups<'s, 'o>(mut sites: &'s [Site<'o>]) -> impl Iterator<Item = &'s [Site<'o>]> {
    let size = page_size();
    let page = move |site: &Site<'_>| site.switched_at() / size;
    std::iter::from_fn(move || {
        let first = sites.first()?;
        let belongs = |before: &Site<'_>, site: &Site<'_>| {
            before.segment() == site.segment()
                && page(site) - page(before) <= MAX_PAGE_GAP
                && page(site) - page(first) < MAX_GROUP_PAGES
        };
        let more = sites.windows(2).take_while(|pair| belongs(&pair[0], &pair[1])).count();
        let (group, rest) = sites.split_at(1 + more);
        sites = rest;
        Some(group)
    })
}

fn by_proc_mem(memory: &mut ProcMem, sites: &[Site<'_>], form: Form) {
    let mut single = Vec::new();
    for page in pages(sites) {
        match run(page, form) {
            Some((start, bytes)) => memory.write(&bytes, start),
            None => single.extend_from_slice(page),
        }
    }
    let no_filter = LazyCell::new(|| !writable::has_seccomp_filter());
    for group in groups(&single) {
        if group.len() < MPROTECT_THRESHOLD || !*no_filter || writable::write(group, form).is_err() {
            one_by_one(memory, group, form);
        }
    }
}

fn by_mprotect(sites: &[Site<'_>], form: Form, error: &mut FirstError) {
    for group in groups(sites) {
        // A single page may be the reason that the complete group is refused.
        if writable::write(group, form).is_err() {
            pages(group).for_each(|page| error.note(writable::write(page, form)));
        }
    }
}

/// Writes the sites of the group that do not have the form yet, one by one.
fn one_by_one(memory: &mut ProcMem, group: &[Site<'_>], form: Form) {
    for site in group.iter().filter(|site| needs_write(**site, form)) {
        memory.write(&site.bytes(form), site.switched_at());
    }
}

/// The bytes to write from the first site of a page to the last; `None` if they contain a breakpoint, or changed during the read, or if this
/// architecture has only single writes.
fn run(page: &[Site<'_>], form: Form) -> Option<(usize, Vec<u8>)> {
    let breakpoint = BREAKPOINT?;
    let (start, end) = (page.first()?.switched_at(), page.last()?.switched_at());
    // SAFETY: between two sites on one page of code, which is loaded and readable. Volatile, because code changes.
    let byte = |address: usize| unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
    let unless_breakpoint = |address| Some(byte(address)).filter(|byte| *byte != breakpoint);
    let before = (start..=end).map(unless_breakpoint).collect::<Option<Vec<u8>>>()?;
    let mut bytes = before.clone();
    for site in page {
        bytes[site.switched_at() - start] = site.bytes(form)[0];
    }
    before.iter().copied().eq((start..=end).map(byte)).then_some((start, bytes))
}

/// Makes every processor that runs this process discard decoded instructions. If the kernel has no such call, a processor may execute
/// the old instruction for a moment longer, which is harmless.
pub(super) fn synchronize_cores() {
    tracepoint_ring::membarrier::synchronize_cores();
}

/// Tells valgrind to discard its translation of a group.
fn discard(group: &[Site<'_>]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let (start, end) = (first.bounds().0, last.bounds().1);
    discard_translations(start, end - start);
}
