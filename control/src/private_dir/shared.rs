//! Directories in a run directory that a group shares.

use super::{DirError, OPEN_DIR, PrivateDir};
use rustix::fs::{AtFlags, Mode, RenameFlags, mkdirat, openat, renameat_with, unlinkat};
use std::io;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

impl PrivateDir {
    /// Makes the directory `name` in this one. It gets its name when the group has access: other members may look for it all the time.
    pub(super) fn make_shared_subdir(&self, name: &str) -> Result<Self, DirError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: the numbers of this process differ.
        let temporary = format!(".{name}.{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let attempt = || -> io::Result<Self> {
            mkdirat(self, &temporary, Mode::RWXU)?;
            let dir = Self { path: self.path.join(name), fd: openat(self, &temporary, OPEN_DIR, Mode::empty())? };
            dir.open_to_group()?;
            renameat_with(self, &temporary, self, name, RenameFlags::NOREPLACE)?;
            Ok(dir)
        };
        let made = attempt().inspect_err(|_| {
            let _ = unlinkat(self, &temporary, AtFlags::REMOVEDIR);
        });
        made.map_err(|error| self.failed("make", name, error))?.checked()
    }
}
