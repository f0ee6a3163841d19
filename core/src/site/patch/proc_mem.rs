//! `/proc/self/mem`: writes to pages of code that are not writable.

use super::machine;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

/// The first of several errors.
#[derive(Debug, Default)]
pub(super) struct FirstError(Option<io::Error>);

impl FirstError {
    pub(super) fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.0.get_or_insert(error);
        }
    }

    pub(super) fn text(self) -> String {
        self.0.map_or_else(|| "the write had no effect".to_owned(), |error| error.to_string())
    }
}

/// `/proc/self/mem`, opened by the first write: some batches do not need it.
#[derive(Debug, Default)]
pub(super) struct ProcMem {
    file: Option<File>,
    inode: Option<(u64, u64)>,
    pub(super) error: FirstError,
}

impl ProcMem {
    /// Writes, or records the error. Does nothing after a failed open.
    pub(super) fn write(&mut self, bytes: &[u8], address: usize) {
        self.forget_closed();
        if self.file.is_none() && self.error.0.is_none() {
            match open() {
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

fn open() -> io::Result<File> {
    let file = OpenOptions::new().write(true).open("/proc/self/mem")?;
    let seen = machine::executes_writes(|bytes, address| {
        // A word that was not written is noticed by its reader.
        let _ = file.write_all_at(bytes, address as u64);
    });
    if seen { Ok(file) } else { Err(io::Error::other("the code is translated, which ignores such writes")) }
}

fn inode(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|file| (file.dev(), file.ino()))
}
