//! Stores the header through a shared mapping of the file's first page. Such a store has the effect of a small positional write, without a
//! system call. `docs/format-dt.md` shows why it preserves the order of writes.
#![expect(unsafe_code, reason = "a raw pointer into a mapping is the only way to store the header as a whole")]

use crate::header::HEADER_SIZE;
use fileguard::MappingGuard;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::fstatfs;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The smallest page size of all machines.
const PAGE: usize = 4096;

/// File systems whose mappings and positional writes share memory pages, so that readers see both in the same order: ext2 to ext4, XFS,
/// Btrfs, F2FS and tmpfs. For an overlay, the underlying file system cannot be determined.
const COHERENT: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// The mapped first page of a file.
#[derive(Debug)]
pub(super) struct HeaderPage {
    // Dropped before the mapping that it guards.
    guarded: MappingGuard,
    map: MmapRaw,
}

impl HeaderPage {
    /// Maps the first page of `file`, whose header has allocated the page. `None` if stores do not have the effect of writes, or the page
    /// cannot be mapped: on machines other than x86-64, on other file systems, or if the mapping is refused or cannot be guarded.
    pub(super) fn of(file: &File) -> Option<Self> {
        if cfg!(miri) {
            return None;
        }
        let kind = u64::try_from(fstatfs(file).ok()?.f_type).ok()?;
        if !cfg!(target_arch = "x86_64") || !COHERENT.contains(&kind) {
            return None;
        }
        let map = MmapOptions::new().len(PAGE).map_raw(file).ok()?;
        // SAFETY: the mapping was made here, and is unmapped after the guard, which is declared before it. Only `store` touches
        // it, through its raw pointer, and it is never read.
        let guarded =
            unsafe { MappingGuard::optional(map.as_ptr().addr(), PAGE, &Arc::new(AtomicU64::new(0))) }.ok()?;
        Some(Self { guarded, map })
    }

    /// Stores the header. Returns `false` if it is not in the file: the page was truncated, or the medium was full.
    pub(super) fn store(&mut self, header: &[u8; HEADER_SIZE]) -> bool {
        // SAFETY: the page is mapped, readable and writable, for as long as `self` lives, and longer than a header. No other
        // reference to it exists in this program, and `self` is borrowed exclusively.
        unsafe { store(self.map.as_mut_ptr(), header) };
        self.guarded.is_whole()
    }
}

/// Stores the fields that change by one instruction, so that a kill leaves all or none of them. The first field, which does not change,
/// is stored before, for a file that was truncated and has grown again.
///
/// # Safety
///
/// `place` is valid for a header, and the first byte of a page.
#[cfg(target_arch = "x86_64")]
unsafe fn store(place: *mut u8, header: &[u8; HEADER_SIZE]) {
    // SAFETY: 4 bytes and the 16 behind them, of the 20 that the caller guarantees. They are within one cache line, and so
    // within a page: if it has to be faulted in, that happens before either store. Neither instruction needs an alignment. As the
    // assembly may touch any memory, the compiler keeps it between the system calls before and after it, and x86-64 makes stores, those
    // of the kernel included, visible in program order.
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
    fn only_header_bytes_are_stored() {
        let file = file();
        let header: [u8; HEADER_SIZE] = std::array::from_fn(|byte| byte as u8 + 100);
        assert!(mapped(&file).store(&header));
        let mut bytes = [0; 30];
        file.read_exact_at(&mut bytes, 0).expect("30 bytes");
        assert_eq!((bytes[..20].to_vec(), &bytes[20..]), (header.to_vec(), &[9; 10][..]));
        assert_eq!(file.metadata().expect("a file").len(), 30);
    }

    #[test]
    fn a_truncated_page_is_reported_and_others_are_unchanged() {
        let (cut, other) = (file(), file());
        let (mut page, mut whole) = (mapped(&cut), mapped(&other));
        cut.set_len(0).expect("cut");
        assert!(!page.store(&[1; HEADER_SIZE]));
        assert!(!page.store(&[1; HEADER_SIZE]));
        assert!(whole.store(&[1; HEADER_SIZE]));
        assert_eq!(cut.metadata().expect("a file").len(), 0);
    }

    #[test]
    fn an_incoherent_mapping_is_not_used() {
        let process = File::options().read(true).write(true).open("/proc/self/comm").expect("this process");
        assert!(HeaderPage::of(&process).is_none());
    }
}
