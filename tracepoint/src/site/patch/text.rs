//! Writing to the program's own code.
//!
//! First by `/proc/self/mem`, which writes to pages that are not writable, and leaves their protection as it is; opened for each
//! batch, because a descriptor that a child inherits would write into its parent. Where that is refused (a process that may not be
//! inspected, a kernel that forbids it), by making the page writable for a moment.
//!
//! A batch writes one run for each page, from its first site to its last: the bytes between are read and written back. A byte
//! between that somebody else may be changing at the same time, a debugger or an in-kernel probe, is an `int3`; where there is one,
//! that page's sites are written byte by byte.

use super::entry::{Form, Site};
use crate::site::SwitchError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The size of a page of code, on x86-64.
const PAGE: usize = 4096;
/// The breakpoint instruction.
const INT3: u8 = 0xCC;

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
    by_mprotect(patches)
        .map_err(|mprotect| SwitchError { proc_mem: proc_mem.to_string(), mprotect: mprotect.to_string() })
}

fn pages(patches: &[Patch]) -> impl Iterator<Item = &[Patch]> {
    patches.chunk_by(|(a, _), (b, _)| a.address() / PAGE == b.address() / PAGE)
}

fn by_proc_mem(patches: &[Patch]) -> io::Result<()> {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    for page in pages(patches) {
        match run(page) {
            Some((start, bytes)) => memory.write_all_at(&bytes, start as u64)?,
            None => one_by_one(&memory, page)?,
        }
        verify(page)?;
        discard_translations(page);
    }
    Ok(())
}

fn one_by_one(memory: &File, page: &[Patch]) -> io::Result<()> {
    page.iter().try_for_each(|(site, form)| memory.write_all_at(&[form.byte()], site.address() as u64))
}

/// The bytes from the first site of a page to the last, as they shall be; `None` if a breakpoint stands between.
fn run(page: &[Patch]) -> Option<(usize, Vec<u8>)> {
    let (start, end) = (page.first()?.0.address(), page.last()?.0.address());
    let mut bytes = vec![0; end - start + 1];
    for (offset, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: between two instructions of one page of code, which is loaded and readable. Volatile, as code changes.
        *byte = unsafe { std::ptr::with_exposed_provenance::<u8>(start + offset).read_volatile() };
    }
    if bytes.contains(&INT3) {
        return None;
    }
    for (site, form) in page {
        bytes[site.address() - start] = form.byte();
    }
    Some((start, bytes))
}

fn by_mprotect(patches: &[Patch]) -> io::Result<()> {
    for page in pages(patches) {
        let start = page[0].0.address() / PAGE * PAGE;
        let protect = |protection| {
            // SAFETY: a page of this program's code. It stays readable and executable throughout, so that nobody who runs in it
            // notices.
            let failed = unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(start), PAGE, protection) };
            if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
        for (site, form) in page {
            // SAFETY: the page is writable, and the byte is the opcode of a site of ours; one byte is written in one piece.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(site.address()).write_volatile(form.byte()) };
        }
        protect(libc::PROT_READ | libc::PROT_EXEC)?;
        verify(page)?;
        discard_translations(page);
    }
    Ok(())
}

fn verify(page: &[Patch]) -> io::Result<()> {
    if page.iter().all(|(site, form)| site.byte() == form.byte()) {
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
fn discard_translations(page: &[Patch]) {
    /// `VALGRIND_DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD_TRANSLATIONS: usize = 0x1002;
    let (Some((first, _)), Some((last, _))) = (page.first(), page.last()) else { return };
    let request = [DISCARD_TRANSLATIONS, first.address(), last.address() - first.address() + 5, 0, 0, 0];
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
