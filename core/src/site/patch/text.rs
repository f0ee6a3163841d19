//! Writing to the program's own code.
//!
//! First by `/proc/self/mem`, which writes to pages that are not writable, and leaves their protection as it is; opened for each
//! batch, because a descriptor that a child inherits would write into its parent. Where that is refused (a process that may not be
//! inspected, a kernel that forbids it), by [making the pages writable](super::writable) for a moment. What one way refuses is tried
//! the next way, page by page: nothing is left out because something else failed.
//!
//! A batch writes one run for each page, from its first site to its last: the bytes between are read and written back. A byte
//! between that somebody else may be changing at the same time, a debugger or an in-kernel probe, is an `int3`; where there is one,
//! or the run has changed by the time that it is to be written, that page's sites are written byte by byte. (A breakpoint that is set
//! while the system call that writes the run is under way is lost: nothing can tell whether one comes between the last look and the
//! write. The same goes for one on a site's opcode.) So are pages that linkers have padded with `int3`, between functions, which
//! looks the same: many of those, close together, are made writable with one call, which costs as much as some twenty single bytes.
//! Not in a process with a filter of system calls, which may end it for that call, and has let `/proc/self/mem` pass.

use super::entry::{Form, Site};
use super::segment::PAGE;
use super::writable;
use crate::site::SwitchError;
use std::cell::LazyCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The breakpoint instruction.
const INT3: u8 = 0xCC;
/// Groups of neighbours have no more pages than this from their first to their last; and from one site to the next, at most one page
/// without any.
const SPAN: usize = 64;
const NEAR: usize = 2;
/// From this many single bytes on, `mprotect` is cheaper. (Measured: 1.5 µs for each byte; 28 µs for two calls of `mprotect`,
/// while another processor runs the program.)
const MANY: usize = 24;

/// Writes the form to all of these sites, sorted by address: to as many as can be written.
///
/// # Errors
///
/// If some cannot. A site that has become foreign is left alone, which is no error.
pub(super) fn write(sites: &[Site<'_>], form: Form) -> Result<(), SwitchError> {
    if sites.is_empty() {
        return Ok(());
    }
    writable::restore_left();
    let (mut memory, mut mprotect) = (ProcMem::default(), FirstError::default());
    by_proc_mem(&mut memory, sites, form);
    let left: Vec<Site<'_>> = sites.iter().filter(|site| is_undone(**site, form)).copied().collect();
    by_mprotect(&left, form, &mut mprotect);
    one_by_one(&mut memory, &left, form);
    groups(sites).for_each(discard_translations);
    if !left.iter().any(|site| is_undone(*site, form)) {
        return Ok(());
    }
    Err(SwitchError { proc_mem: memory.error.text(), mprotect: mprotect.text() })
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
        self.0.map_or_else(|| "what was written does not stand there".to_owned(), |error| error.to_string())
    }
}

/// `/proc/self/mem`, opened when something is first written: a batch may need none of it.
#[derive(Debug, Default)]
struct ProcMem {
    file: Option<File>,
    error: FirstError,
}

impl ProcMem {
    /// Writes, or notes why not; what could not be opened is not tried again.
    fn write(&mut self, bytes: &[u8], address: usize) {
        if self.file.is_none() && self.error.0.is_none() {
            match OpenOptions::new().write(true).open("/proc/self/mem") {
                Ok(file) => self.file = Some(file),
                Err(error) => self.error.note(Err(error)),
            }
        }
        if let Some(file) = &self.file {
            self.error.note(file.write_all_at(bytes, address as u64));
        }
    }
}

/// Whether the site is not as it shall be, though what stands there is a site's.
fn is_undone(site: Site<'_>, form: Form) -> bool {
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
            before.segment() == site.segment() && page(site) - page(before) <= NEAR && page(site) - page(first) < SPAN
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
    let nobody_filters = LazyCell::new(writable::nobody_filters);
    for group in groups(&single) {
        if group.len() < MANY || !*nobody_filters || writable::write(group, form).is_err() {
            one_by_one(memory, group, form);
        }
    }
}

fn by_mprotect(sites: &[Site<'_>], form: Form, error: &mut FirstError) {
    for group in groups(sites) {
        // Where a group is refused, one of its pages may be the reason.
        if writable::write(group, form).is_err() {
            pages(group).for_each(|page| error.note(writable::write(page, form)));
        }
    }
}

/// Those that are not done yet.
fn one_by_one(memory: &mut ProcMem, group: &[Site<'_>], form: Form) {
    for site in group.iter().filter(|site| is_undone(**site, form)) {
        memory.write(&[form.byte()], site.opcode());
    }
}

/// The bytes from the first site of a page to the last, as they shall be; `None` if a breakpoint stands between, or is being set.
fn run(page: &[Site<'_>], form: Form) -> Option<(usize, Vec<u8>)> {
    let (start, end) = (page.first()?.opcode(), page.last()?.opcode());
    // SAFETY: between two instructions of one page of code, which is loaded and readable. Volatile, as code changes.
    let byte = |address: usize| unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
    let unless_int3 = |address| Some(byte(address)).filter(|byte| *byte != INT3);
    let before = (start..=end).map(unless_int3).collect::<Option<Vec<u8>>>()?;
    let mut bytes = before.clone();
    for site in page {
        bytes[site.opcode() - start] = form.byte();
    }
    before.iter().copied().eq((start..=end).map(byte)).then_some((start, bytes))
}

/// Makes every processor that runs this process forget what it has decoded. Where the kernel has no such call, a processor may run
/// the old instruction for a moment longer; each of the two is harmless.
pub(super) fn synchronize_cores() {
    tracepoint_ring::membarrier::synchronize_cores();
}

/// Tells valgrind that code has changed, which it runs a translation of. Natively this is five instructions without effect.
fn discard_translations(group: &[Site<'_>]) {
    /// `VALGRIND_DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD_TRANSLATIONS: usize = 0x1002;
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let (start, end) = (first.bounds().0, last.bounds().1);
    let request = [DISCARD_TRANSLATIONS, start, end - start, 0, 0, 0];
    // SAFETY: valgrind.h's marker sequence: rotations of rdi that add up to 128 bits, and an exchange of rbx with itself. Under
    // valgrind the six words behind rax are read, and rdx is the answer.
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
