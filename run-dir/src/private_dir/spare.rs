//! Files that can be replaced on a full file system.
//!
//! Next to such a file is a spare, `.NAME.spare`, whose space was allocated in advance. A replacement allocates new space if possible;
//! otherwise it uses the spare:
//!
//! ```text
//!   there is room:   write `.NAME.new`   ─▶ rename to NAME ─▶ allocate the spare, if it is missing or too small
//!   there is none:   write `.NAME.spare` ─▶ exchange it with NAME: the old file is the spare of the next replacement
//! ```
//!
//! No step writes to a file that readers see, so they find the old contents or the new ones. If the writer is killed before the exchange,
//! the next replacement writes the spare again. No step releases space, so no other program can take it in between.

use super::PrivateDir;
use rustix::fs::{RenameFlags, renameat_with};
use std::io::{self, Write};
use std::time::SystemTime;

/// Number of bytes by which a file can grow before its spare is too small.
const GROWTH: u64 = 4096;

impl PrivateDir {
    /// Like [`PrivateDir::replace`], but uses the spare if there is no space. Afterwards the file has a spare, if there is space for one.
    pub(crate) fn replace_with_spare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put_with_spare(name, bytes, Self::replace)
    }

    /// Writes the file by `put`, or from its spare if there is no space.
    pub(super) fn put_with_spare(
        &self,
        name: &str,
        bytes: &[u8],
        put: fn(&Self, &str, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match put(self, name, bytes) {
            Err(error) if is_no_room(&error) => self.use_spare(name, bytes).map_err(|_| error)?,
            replaced => replaced?,
        }
        self.keep_spare(name, bytes.len() as u64);
        Ok(())
    }

    /// Allocates the spare of the file `name` of `len` bytes, unless a large enough one exists. A smaller one stays if there is no space.
    pub(crate) fn keep_spare(&self, name: &str, len: u64) {
        let spare = Self::spare(name);
        let found = self.file_len(&spare);
        if found.as_ref().is_ok_and(|found| *found > len) {
            return;
        }
        let file = if found.is_ok() { self.open_to_change(&spare) } else { self.create_file(&spare, len + GROWTH) };
        // The last page of an exchanged file may have room for `len` bytes.
        let kept =
            file.and_then(|file| Self::allocate(&file, len + GROWTH).or_else(|_| Self::allocate(&file, len + 1)));
        if kept.is_err() && found.is_err() {
            self.remove_file(&spare);
        }
    }

    fn use_spare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let spare = Self::spare(name);
        let file = self.open_to_change(&spare)?;
        (&*file).write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        // Readers recognise a version by inode and time. The kernel's time stamps are too coarse to distinguish versions whose inode is
        // reused.
        file.set_modified(SystemTime::now())?;
        self.open.at(|fd| renameat_with(fd, &spare, fd, name, RenameFlags::EXCHANGE))
    }

    /// Name of the spare of the file `name`.
    pub fn spare(name: &str) -> String {
        format!(".{name}.spare")
    }
}

/// Returns whether an operation failed because the file system is full or a quota is used up.
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
