//! Words in a mapped file for statistics. Threads of this process change them, and other processes read them.
//!
//! A forked child does not take part in its parent's statistics, and does not know that it is a child until it asks. The file is therefore
//! mapped only in the process that created it (`MADV_DONTFORK`). Private memory of the same size is mapped in addition. No thread of the
//! parent touches it, so it uses no physical memory. A child, however it was created, finds the [owner](owner) wiped by the kernel, and
//! counts in the private memory.
#![expect(unsafe_code, reason = "maps files and memory")]

use super::files::allocate;
use super::reservation::Reservation;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const WORD: usize = size_of::<AtomicU64>();

/// Words in a file.
#[derive(Debug)]
pub struct MappedWords {
    map: ManuallyDrop<MmapRaw>,
    /// The memory that a forked child changes instead of the file.
    of_child: MmapRaw,
    len: usize,
    owner: &'static AtomicU64,
    /// The process that mapped the file.
    process: u32,
    _reservation: Reservation,
}

impl MappedWords {
    /// Maps the first `len` words of `file`, which is new and has that length. Allocates their space and makes it resident.
    pub fn new(file: &File, len: usize, reservation: Reservation) -> io::Result<Self> {
        let bytes = len * WORD;
        allocate(file, 0..bytes as u64)?;
        let owner = owner()?;
        let of_child = MmapRaw::from(MmapOptions::new().len(bytes).map_anon()?);
        let map = ManuallyDrop::new(MmapOptions::new().len(bytes).populate().map_raw(file)?);
        let words = Self { map, of_child, len, owner, process: process::id(), _reservation: reservation };
        words.map.advise(Advice::DontFork)?;
        // The pages are shared and allocated: this only makes them writable, so that later stores do not fault. Kernels before 5.14 fault
        // at the first store.
        let _ = words.map.advise(Advice::PopulateWrite);
        Ok(words)
    }

    /// Returns the words; in a forked child those of the private memory, which are zero at first.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // Relaxed: this process has stored it before it mapped anything, or it is another process.
        let is_ours = self.owner.load(Ordering::Relaxed) == u64::from(self.process);
        let base = if is_ours { self.map.as_mut_ptr() } else { self.of_child.as_mut_ptr() };
        // SAFETY: both are mapped readable and writable while `self` lives, the file in this process and the other memory in its children, too;
        // they have `len` words, and begin at a page. All accesses are atomic, for which any value is valid. The file's space is allocated. Another
        // process of the same user could truncate it, which ends this one by SIGBUS, as it could write to this process's memory.
        unsafe { std::slice::from_raw_parts(base.cast(), self.len) }
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // A forked child has no mapping at these addresses, or by now an unrelated one, and must not unmap it.
        if process::id() == self.process {
            // SAFETY: dropped only here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.map) };
        }
    }
}

/// Returns a word that holds the id of this process; in a forked child it holds 0 until the child calls this function.
fn owner() -> io::Result<&'static AtomicU64> {
    static PAGE: OnceLock<MmapRaw> = OnceLock::new();
    let page = if let Some(page) = PAGE.get() {
        page
    } else {
        let page = MmapRaw::from(MmapOptions::new().len(WORD).map_anon()?);
        // SAFETY: a page that was just mapped; the advice changes nothing in this process.
        if unsafe { libc::madvise(page.as_mut_ptr().cast(), WORD, libc::MADV_WIPEONFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        PAGE.get_or_init(|| page)
    };
    // SAFETY: mapped and never unmapped, aligned to a page, and accessed as an atomic only.
    let word = unsafe { AtomicU64::from_ptr(page.as_mut_ptr().cast()) };
    word.store(process::id().into(), Ordering::Relaxed);
    Ok(word)
}
