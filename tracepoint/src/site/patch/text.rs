//! Writing to the program's own code.
//!
//! First by `/proc/self/mem`, which writes to pages that are not writable, and leaves their protection as it is; opened for each
//! batch, because a descriptor that a child inherits would write into its parent. Where that is refused (a process that may not be
//! inspected, a kernel that forbids it), by making the pages writable for a moment.
//!
//! A batch writes one run for each page, from its first site to its last: the bytes between are read and written back. A byte
//! between that somebody else may be changing at the same time, a debugger or an in-kernel probe, is an `int3`; where there is one,
//! that page's sites are written byte by byte. So are pages that linkers have padded with it, between functions, which looks the
//! same: many of those, close together, are made writable with one call, which costs as much as some twenty single bytes.

use super::entry::{Form, Site};
use crate::site::SwitchError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The size of a page of code, on x86-64.
const PAGE: usize = 4096;
/// The breakpoint instruction.
const INT3: u8 = 0xCC;
/// Sites that lie no further apart than this are neighbours.
const NEAR: usize = 8 * PAGE;
/// From this many single bytes on, `mprotect` is cheaper. (Measured: 1.5 µs for each byte; 28 µs for two calls of `mprotect`,
/// while another processor runs the program.)
const MANY: usize = 24;

/// A site and the form that it shall have.
type Patch = (Site, Form);

/// Writes all of them, sorted by address.
pub(super) fn write(patches: &[Patch]) -> Result<(), SwitchError> {
    if patches.is_empty() {
        return Ok(());
    }
    let proc_mem = match by_proc_mem(patches) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    neighbours(patches)
        .try_for_each(by_mprotect)
        .map_err(|mprotect| SwitchError { proc_mem: proc_mem.to_string(), mprotect: mprotect.to_string() })
}

fn pages(patches: &[Patch]) -> impl Iterator<Item = &[Patch]> {
    patches.chunk_by(|(a, _), (b, _)| a.opcode() / PAGE == b.opcode() / PAGE)
}

/// Groups within one segment, of which each site is near the next.
fn neighbours(patches: &[Patch]) -> impl Iterator<Item = &[Patch]> {
    patches.chunk_by(|(a, _), (b, _)| a.segment() == b.segment() && b.opcode() - a.opcode() <= NEAR)
}

fn by_proc_mem(patches: &[Patch]) -> io::Result<()> {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    let mut single = Vec::new();
    for page in pages(patches) {
        if let Some((start, bytes)) = run(page) {
            memory.write_all_at(&bytes, start as u64)?;
            finish(page)?;
        } else {
            single.extend_from_slice(page);
        }
    }
    for group in neighbours(&single) {
        if group.len() < MANY || by_mprotect(group).is_err() {
            one_by_one(&memory, group)?;
        }
    }
    Ok(())
}

fn one_by_one(memory: &File, group: &[Patch]) -> io::Result<()> {
    group.iter().try_for_each(|(site, form)| memory.write_all_at(&[form.byte()], site.opcode() as u64))?;
    finish(group)
}

/// The bytes from the first site of a page to the last, as they shall be; `None` if a breakpoint stands between.
fn run(page: &[Patch]) -> Option<(usize, Vec<u8>)> {
    let (start, end) = (page.first()?.0.opcode(), page.last()?.0.opcode());
    let mut bytes = Vec::with_capacity(end - start + 1);
    for address in start..=end {
        // SAFETY: between two instructions of one page of code, which is loaded and readable. Volatile, as code changes.
        let byte = unsafe { std::ptr::with_exposed_provenance::<u8>(address).read_volatile() };
        if byte == INT3 {
            return None;
        }
        bytes.push(byte);
    }
    for (site, form) in page {
        bytes[site.opcode() - start] = form.byte();
    }
    Some((start, bytes))
}

/// Writes to a group of neighbours: the pages from the first to the last are writable meanwhile.
fn by_mprotect(group: &[Patch]) -> io::Result<()> {
    let (Some((first, _)), Some((last, _))) = (group.first(), group.last()) else { return Ok(()) };
    let start = first.opcode() / PAGE * PAGE;
    let length = last.opcode() - start + 1;
    let protect = |protection| {
        // SAFETY: pages of one segment of this program's code. They stay readable and executable throughout, so that nobody who
        // runs in them notices.
        let failed = unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(start), length, protection) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    let restore = || protect(libc::PROT_READ | libc::PROT_EXEC);
    if let Err(refused) = protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) {
        // A range that the kernel divides may have been changed in part.
        restore()?;
        return Err(refused);
    }
    for (site, form) in group {
        // SAFETY: the page is writable, and the byte is the opcode of a site of ours; one byte is written in one piece.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(site.opcode()).write_volatile(form.byte()) };
    }
    // Short of memory for the moment, if it fails: nothing of what was allowed before is asked for.
    restore().or_else(|_| restore())?;
    finish(group)
}

/// After writing: makes sure of it, and tells those who keep translations.
fn finish(group: &[Patch]) -> io::Result<()> {
    verify(group)?;
    discard_translations(group);
    Ok(())
}

fn verify(group: &[Patch]) -> io::Result<()> {
    if group.iter().all(|(site, form)| site.byte() == form.byte()) {
        Ok(())
    } else {
        Err(io::Error::other("what was written does not stand there"))
    }
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
