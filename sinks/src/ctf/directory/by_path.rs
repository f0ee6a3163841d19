//! The counterpart on systems other than Linux: a directory whose entries are accessed by its path, so that it must not be renamed.

use super::Opening;
use fileguard::CheckedFd;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{self, Path, PathBuf};

/// A directory.
#[derive(Debug)]
pub(super) struct OpenDirectory(PathBuf);

impl OpenDirectory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path::absolute(path)?;
        if path.metadata()?.is_dir() { Ok(Self(path)) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    pub(super) fn subdirectory(&self, name: &str) -> io::Result<Self> {
        let path = self.0.join(name);
        if path.symlink_metadata()?.is_dir() { Ok(Self(path)) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    pub(super) const fn close(&self) {}

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.0)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Opens a file for writing. It is written at its cursor: what Windows opens for appending cannot be truncated.
    pub(super) fn file(&self, name: &str, opening: Opening) -> io::Result<CheckedFd<File>> {
        let mut options = File::options();
        match opening {
            Opening::New => options.create_new(true),
            Opening::Existing => &mut options,
            Opening::Start => options.create(true).truncate(false),
        };
        let mut file = options.write(true).open(self.0.join(name))?;
        if matches!(opening, Opening::Existing) {
            file.seek(SeekFrom::End(0))?;
        }
        CheckedFd::of(file)
    }

    pub(super) fn create_directory(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    /// Renames a file; one with the new name is replaced.
    pub(super) fn rename(&self, name: &str, new: &str) -> io::Result<()> {
        fs::rename(self.0.join(name), self.0.join(new))
    }

    /// Moves a file to another directory.
    pub(super) fn move_file(&self, name: &str, to: &Self) -> io::Result<()> {
        fs::rename(self.0.join(name), to.0.join(name))
    }

    pub(super) fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    pub(super) fn remove_contents(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        Ok(())
    }
}
