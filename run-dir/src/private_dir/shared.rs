//! Directories in a run directory that a group shares.

use super::{DirError, PrivateDir, open_to_group};
use rustix::fs::{Mode, RenameFlags, mkdirat, renameat_with};
use std::io;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

impl PrivateDir {
    /// Creates the directory `name` in this one. It is renamed to `name` after the group was given access, because other members may look
    /// for it at any time.
    pub(super) fn make_shared_subdir(&self, name: &str) -> Result<Self, DirError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: the numbers of this process differ.
        let temporary = format!(".{name}.{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let attempt = || -> io::Result<Self> {
            self.open.at(|fd| mkdirat(fd, &temporary, Mode::RWXU))?;
            let opened = self.open.directory(&temporary)?;
            open_to_group(&*opened)?;
            self.open.at(|fd| renameat_with(fd, &temporary, fd, name, RenameFlags::NOREPLACE))?;
            Self::of(self.path.join(name), opened)
        };
        let made = attempt().inspect_err(|_| {
            self.remove_empty(&temporary);
        });
        made.map_err(|error| self.failed("make", name, error))?.checked()
    }
}
