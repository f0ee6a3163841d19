//! A mapped dt file, to measure its cost: entries go straight to the page cache, and so do the words of the header,
//! in the order used by the positional writer.

use memmap2::MmapMut;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{Ordering, compiler_fence};

const HEADER: usize = 20;

pub(crate) struct MappedFile {
    map: MmapMut,
    logsize: usize,
    filesize: usize,
    slot: usize,
    used: usize,
}

impl MappedFile {
    pub(crate) fn create(path: &Path, logsize: usize, filesize: usize) -> Self {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path).expect("a file");
        file.set_len((HEADER + logsize * filesize) as u64).expect("room");
        // SAFETY: the file was made here, in a directory of this program's own, and no other program opens or truncates it.
        let map = unsafe { MmapMut::map_mut(&file) }.expect("memory");
        let mut file = Self { map, logsize, filesize, slot: 0, used: 0 };
        file.header([1, logsize as u32, 0, u32::MAX, 0]);
        file
    }

    /// A byte stream.
    pub(crate) fn trace(&mut self, mut entry: &[u8]) {
        while !entry.is_empty() {
            let (part, rest) = entry.split_at(entry.len().min(self.logsize - self.used));
            if self.used == 0 {
                self.tell(0);
            }
            let from = HEADER + self.slot * self.logsize + self.used;
            self.map[from..from + part.len()].copy_from_slice(part);
            self.used += part.len();
            entry = rest;
            if self.used == self.logsize {
                self.tell(self.logsize);
                self.slot = (self.slot + 1) % self.filesize;
                self.used = 0;
            }
        }
    }

    fn tell(&mut self, size: usize) {
        let before = u32::from_le_bytes([self.map[8], self.map[9], self.map[10], self.map[11]]);
        let slots = before.max(self.slot as u32 + 1);
        self.header([1, self.logsize as u32, slots, self.slot as u32, size as u32]);
    }

    /// A kill comes between two instructions, so that the order of the compiler's stores is the order of the file's.
    fn header(&mut self, fields: [u32; 5]) {
        compiler_fence(Ordering::SeqCst);
        for (place, field) in self.map[..HEADER].chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        compiler_fence(Ordering::SeqCst);
    }
}
