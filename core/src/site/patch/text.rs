//! Writes to the program's own code.
//!
//! The first method is `/proc/self/mem`, which writes to pages that are not writable and leaves their protection unchanged. It is opened
//! for each batch, because a descriptor inherited by a forked child would write into the parent. If it is refused (the process is
//! not dumpable, or the kernel forbids it), the second method [makes the pages writable](super::writable) for a moment. Sites that one
//! method cannot write are tried with the other, page by page, so that one failure does not affect other sites.
//!
//! A batch writes one run per page, from the first site of the page to the last: the bytes between sites are read and written back.
//! A byte in between may be changed concurrently by a debugger or a uprobe, which write an `int3`. If the run contains an `int3`, or has
//! changed when it is about to be written, the sites of that page are written byte by byte. (A breakpoint that is set during the system
//! call that writes the run is lost, because no check can exclude a change between the last read and the write. The same is true for a
//! breakpoint on the opcode of a site.)
//!
//! Padding between functions, which some linkers fill with `int3`, cannot be distinguished from breakpoints, so such pages are also written byte
//! by byte. If many such sites are close together, the pages are made writable with one call instead, which costs as much as about
//! twenty single bytes. This is not done in a process with a seccomp filter, because the filter may kill the process for that call, and
//! `/proc/self/mem` already works.

use super::entry::{Form, Site};
use super::segment::PAGE;
use super::{split, writable};
use crate::site::SiteSwitchError;
use std::cell::LazyCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// The breakpoint instruction.
const INT3: u8 = 0xCC;
/// Maximum number of pages that a group of neighbouring sites spans.
const MAX_GROUP_PAGES: usize = 64;
/// Maximum distance, in pages, between one site of a group and the next.
const MAX_PAGE_GAP: usize = 2;
/// Number of single bytes at which `mprotect` becomes cheaper. (Measured: 1.5 µs per byte; 28 µs for two calls of `mprotect`, while
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
    groups(sites).for_each(discard_translations);
    if !left.iter().any(|site| needs_write(*site, form)) {
        return Ok(());
    }
    Err(SiteSwitchError { proc_mem: std::mem::take(&mut memory.error).text(), mprotect: mprotect.text() })
}

/// The first of several errors.
#[derive(Debug, Default)]
struct FirstError(Option<io::Error>);

impl FirstError {
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.0.get_or_insert(error);
        }
    }

    fn text(self) -> String {
        self.0.map_or_else(|| "the write had no effect".to_owned(), |error| error.to_string())
    }
}

/// `/proc/self/mem`, opened by the first write: some batches do not need it.
#[derive(Debug, Default)]
struct ProcMem {
    file: Option<File>,
    inode: Option<(u64, u64)>,
    error: FirstError,
}

impl ProcMem {
    /// Writes, or records the error. Does nothing after a failed open.
    fn write(&mut self, bytes: &[u8], address: usize) {
        self.forget_closed();
        if self.file.is_none() && self.error.0.is_none() {
            match OpenOptions::new().write(true).open("/proc/self/mem") {
                Ok(file) => (self.inode, self.file) = (inode(&file), Some(file)),
                Err(error) => self.error.note(Err(error)),
            }
        }
        if let Some(file) = &self.file {
            self.error.note(file.write_all_at(bytes, address as u64));
        }
    }
}

impl ProcMem {
    /// Another thread may close all descriptors of the program, and open other files: those are neither written to nor closed.
    fn forget_closed(&mut self) {
        if self.file.as_ref().is_some_and(|file| self.inode.is_none() || self.inode != inode(file)) {
            std::mem::forget(self.file.take());
        }
    }
}

impl Drop for ProcMem {
    fn drop(&mut self) {
        self.forget_closed();
    }
}

fn inode(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Returns whether the site has the other form, and is not foreign.
fn needs_write(site: Site<'_>, form: Form) -> bool {
    site.form().is_some_and(|is| is != form)
}

fn pages<'s, 'o>(sites: &'s [Site<'o>]) -> impl Iterator<Item = &'s [Site<'o>]> {
    sites.chunk_by(|a, b| a.opcode() / PAGE == b.opcode() / PAGE)
}

/// Groups of neighbours within one segment.
fn groups<'s, 'o>(mut sites: &'s [Site<'o>]) -> impl Iterator<Item = &'s [Site<'o>]> {
    let page = |site: &Site<'_>| site.opcode() / PAGE;
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
    let no_filter = LazyCell::new(writable::has_no_seccomp_filter);
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

/// Writes the sites of the group that do not have the form yet, byte by byte.
fn one_by_one(memory: &mut ProcMem, group: &[Site<'_>], form: Form) {
    for site in group.iter().filter(|site| needs_write(**site, form)) {
        memory.write(&[form.byte()], site.opcode());
    }
}

/// The bytes to write from the first site of a page to the last; `None` if they contain a breakpoint, or changed during the read.
fn run(page: &[Site<'_>], form: Form) -> Option<(usize, Vec<u8>)> {
    let (start, end) = (page.first()?.opcode(), page.last()?.opcode());
    // SAFETY: between two sites on one page of code, which is loaded and readable. Volatile, because code changes.
    let byte = |address: usize| unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
    let unless_int3 = |address| Some(byte(address)).filter(|byte| *byte != INT3);
    let before = (start..=end).map(unless_int3).collect::<Option<Vec<u8>>>()?;
    let mut bytes = before.clone();
    for site in page {
        bytes[site.opcode() - start] = form.byte();
    }
    before.iter().copied().eq((start..=end).map(byte)).then_some((start, bytes))
}

/// Makes every processor that runs this process discard decoded instructions. If the kernel has no such call, a processor may execute
/// the old instruction for a moment longer, which is harmless.
pub(super) fn synchronize_cores() {
    tracepoint_ring::membarrier::synchronize_cores();
}

/// Tells valgrind to discard its translation of code that has changed. Natively these are five instructions without effect.
fn discard_translations(group: &[Site<'_>]) {
    /// `VALGRIND_DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD_TRANSLATIONS: usize = 0x1002;
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let (start, end) = (first.bounds().0, last.bounds().1);
    let request = [DISCARD_TRANSLATIONS, start, end - start, 0, 0, 0];
    // SAFETY: the marker sequence of valgrind.h: rotations of rdi that add up to 128 bits, and an exchange of rbx with itself. Under
    // valgrind the six words at rax are read, and rdx is the result.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0usize => _,
            options(nostack),
        );
    }
}
