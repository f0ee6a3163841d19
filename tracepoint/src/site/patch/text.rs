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
use super::writable;
use crate::site::SwitchError;
use std::cell::LazyCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The size of a page of code, on x86-64.
pub(super) const PAGE: usize = 4096;
/// The breakpoint instruction.
const INT3: u8 = 0xCC;
/// Groups of neighbours have no more pages than this from their first to their last; and from one site to the next, at most one page
/// without any.
const SPAN: usize = 64;
const NEAR: usize = 2;
/// From this many single bytes on, `mprotect` is cheaper. (Measured: 1.5 µs for each byte; 28 µs for two calls of `mprotect`,
/// while another processor runs the program.)
const MANY: usize = 24;

/// A site and the form that it shall have.
pub(super) type Patch = (Site, Form);

/// Writes all of them, sorted by address: as many as can be written.
///
/// # Errors
///
/// If some cannot. A site that has become foreign is left alone, which is no error.
pub(super) fn write(patches: &[Patch]) -> Result<(), SwitchError> {
    if !patches.iter().any(is_undone) {
        return Ok(());
    }
    writable::restore_left();
    let (mut proc_mem, mut mprotect) = (FirstError(None), FirstError(None));
    let memory = OpenOptions::new().write(true).open("/proc/self/mem");
    if let Ok(memory) = &memory {
        by_proc_mem(memory, patches, &mut proc_mem);
    }
    let left: Vec<Patch> = patches.iter().filter(|patch| is_undone(patch)).copied().collect();
    by_mprotect(&left, &mut mprotect);
    match memory {
        Ok(memory) => one_by_one(&memory, &left, &mut proc_mem),
        Err(error) => proc_mem.note(Err(error)),
    }
    groups(patches).for_each(discard_translations);
    if !left.iter().any(is_undone) {
        return Ok(());
    }
    Err(SwitchError { proc_mem: proc_mem.text(), mprotect: mprotect.text() })
}

/// The first of several errors.
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

/// Whether the site is not as it shall be, though what stands there is a site's.
fn is_undone((site, form): &Patch) -> bool {
    site.form().is_some_and(|is| is != *form)
}

fn pages(patches: &[Patch]) -> impl Iterator<Item = &[Patch]> {
    patches.chunk_by(|(a, _), (b, _)| a.opcode() / PAGE == b.opcode() / PAGE)
}

/// Groups of neighbours within one segment.
fn groups(mut patches: &[Patch]) -> impl Iterator<Item = &[Patch]> {
    let page = |(site, _): &Patch| site.opcode() / PAGE;
    std::iter::from_fn(move || {
        let first = patches.first()?;
        let belongs = |before: &Patch, patch: &Patch| {
            before.0.segment() == patch.0.segment()
                && page(patch) - page(before) <= NEAR
                && page(patch) - page(first) < SPAN
        };
        let more = patches.windows(2).take_while(|pair| belongs(&pair[0], &pair[1])).count();
        let (group, rest) = patches.split_at(1 + more);
        patches = rest;
        Some(group)
    })
}

fn by_proc_mem(memory: &File, patches: &[Patch], error: &mut FirstError) {
    let mut single = Vec::new();
    for page in pages(patches) {
        match run(page) {
            Some((start, bytes)) => error.note(memory.write_all_at(&bytes, start as u64)),
            None => single.extend_from_slice(page),
        }
    }
    let nobody_filters = LazyCell::new(writable::nobody_filters);
    for group in groups(&single) {
        if group.len() < MANY || !*nobody_filters || writable::write(group).is_err() {
            one_by_one(memory, group, error);
        }
    }
}

fn by_mprotect(patches: &[Patch], error: &mut FirstError) {
    for group in groups(patches) {
        // Where a group is refused, one of its pages may be the reason.
        if writable::write(group).is_err() {
            pages(group).for_each(|page| error.note(writable::write(page)));
        }
    }
}

/// Those that are not done yet.
fn one_by_one(memory: &File, group: &[Patch], error: &mut FirstError) {
    for (site, form) in group.iter().filter(|patch| is_undone(patch)) {
        error.note(memory.write_all_at(&[form.byte()], site.opcode() as u64));
    }
}

/// The bytes from the first site of a page to the last, as they shall be; `None` if a breakpoint stands between, or is being set.
fn run(page: &[Patch]) -> Option<(usize, Vec<u8>)> {
    let (start, end) = (page.first()?.0.opcode(), page.last()?.0.opcode());
    // SAFETY: between two instructions of one page of code, which is loaded and readable. Volatile, as code changes.
    let byte = |address: usize| unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
    let unless_int3 = |address| Some(byte(address)).filter(|byte| *byte != INT3);
    let before = (start..=end).map(unless_int3).collect::<Option<Vec<u8>>>()?;
    let mut bytes = before.clone();
    for (site, form) in page {
        bytes[site.opcode() - start] = form.byte();
    }
    before.iter().copied().eq((start..=end).map(byte)).then_some((start, bytes))
}

/// Makes every processor that runs this process forget what it has decoded. Where the kernel has no such call, a processor may run
/// the old instruction for a moment longer; each of the two is harmless.
pub(super) fn synchronize_cores() {
    crate::membarrier::synchronize_cores();
}

/// Tells valgrind that code has changed, which it runs a translation of. Natively this is five instructions without effect.
fn discard_translations(group: &[Patch]) {
    /// `VALGRIND_DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD_TRANSLATIONS: usize = 0x1002;
    let (Some((first, _)), Some((last, _))) = (group.first(), group.last()) else { return };
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
