//! The header through a shared mapping of the file's first page: a store there is what a small positional write is, without a system
//! call. `docs/format-dt.md` argues why it keeps the order of writes.
#![expect(unsafe_code, reason = "that stores into a mapping are whole and hit nothing else is for us to say")]

use crate::header::HEADER_SIZE;
use mapguard::Guarded;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::fstatfs;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The smallest page of all machines.
const PAGE: usize = 4096;

/// File systems whose mappings and positional writes are the same pages of memory, in the same order for whoever reads: ext2 to ext4,
/// XFS, Btrfs, F2FS and tmpfs. An overlay does not tell what it lies over.
const COHERENT: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// The mapped first page of a file.
#[derive(Debug)]
pub(super) struct HeaderPage {
    // Dropped before the mapping that it guards.
    guarded: Guarded,
    map: MmapRaw,
}

impl HeaderPage {
    /// Maps the first page of `file`, which has a header already and with it room for the page. `None` where stores would not be what
    /// writes are: another machine than x86-64, another file system, a mapping that is refused or cannot be guarded.
    pub(super) fn of(file: &File) -> Option<Self> {
        if cfg!(miri) {
            return None;
        }
        let kind = u64::try_from(fstatfs(file).ok()?.f_type).ok()?;
        if !cfg!(target_arch = "x86_64") || !COHERENT.contains(&kind) {
            return None;
        }
        let map = MmapOptions::new().len(PAGE).map_raw(file).ok()?;
        // SAFETY: the mapping was made here, and is unmapped after the guard is dropped, which stands before it. It is touched by `store`
        // alone, through its raw pointer, and never read.
        let guarded = unsafe { Guarded::optional(map.as_ptr().addr(), PAGE, &Arc::new(AtomicU64::new(0))) }.ok()?;
        Some(Self { guarded, map })
    }

    /// Stores the header. `false` if it is not in the file: the page was cut off, or the medium had no room for it.
    pub(super) fn store(&mut self, header: &[u8; HEADER_SIZE]) -> bool {
        // SAFETY: the page is mapped, readable and writable, for as long as `self` lives, and longer than a header. Nothing of this
        // program refers to it but this pointer, and `self` is borrowed exclusively.
        unsafe { store(self.map.as_mut_ptr(), header) };
        self.guarded.is_whole()
    }
}

/// The fields that change are stored by one instruction, so that a kill leaves all or none of them; the first, which never does, before
/// that, for a file that was cut off and has grown again.
///
/// # Safety
///
/// `place` is valid for a header, and the first byte of a page.
#[cfg(target_arch = "x86_64")]
unsafe fn store(place: *mut u8, header: &[u8; HEADER_SIZE]) {
    // SAFETY: 4 bytes and the 16 behind them, of the 20 that the caller vouches for. They lie within one line of the cache, and so
    // within a page: if it has to be brought in, that is before either store begins. Neither instruction needs an alignment. As the
    // assembly may touch any memory, the compiler keeps it between the calls of the kernel before and behind it; and the processor's
    // stores, those of the kernel's copies among them, are seen in the order of the program.
    unsafe {
        std::arch::asm!(
            "mov dword ptr [{place}], {version:e}",
            "movups xmmword ptr [{place} + 4], {others}",
            place = in(reg) place,
            version = in(reg) u32::from_le_bytes([header[0], header[1], header[2], header[3]]),
            others = in(xmm_reg) header.as_ptr().add(4).cast::<std::arch::x86_64::__m128i>().read_unaligned(),
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn store(_: *mut u8, _: &[u8; HEADER_SIZE]) {
    unreachable!("no page is mapped here");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file() -> File {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&[9; 30], 0).expect("room");
        file
    }

    fn mapped(file: &File) -> HeaderPage {
        HeaderPage::of(file).expect("the place for temporary files can be mapped")
    }

    #[test]
    fn a_header_is_stored_and_nothing_else() {
        let file = file();
        let header: [u8; HEADER_SIZE] = std::array::from_fn(|byte| byte as u8 + 100);
        assert!(mapped(&file).store(&header));
        let mut bytes = [0; 30];
        file.read_exact_at(&mut bytes, 0).expect("30 bytes");
        assert_eq!((bytes[..20].to_vec(), &bytes[20..]), (header.to_vec(), &[9; 10][..]));
        assert_eq!(file.metadata().expect("a file").len(), 30);
    }

    #[test]
    fn a_page_that_was_cut_off_is_told_and_others_are_not_touched() {
        let (cut, other) = (file(), file());
        let (mut page, mut whole) = (mapped(&cut), mapped(&other));
        cut.set_len(0).expect("cut");
        assert!(!page.store(&[1; HEADER_SIZE]));
        assert!(!page.store(&[1; HEADER_SIZE]));
        assert!(whole.store(&[1; HEADER_SIZE]));
        assert_eq!(cut.metadata().expect("a file").len(), 0);
    }

    #[test]
    fn a_file_system_whose_mappings_are_other_pages_is_left_alone() {
        let process = File::options().read(true).write(true).open("/proc/self/comm").expect("this process");
        assert!(HeaderPage::of(&process).is_none());
    }
}
