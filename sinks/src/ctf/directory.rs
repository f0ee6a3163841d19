//! The directory: made or found empty, then held open, so that renaming it or changing the working directory does no harm.

use super::CtfError;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, fallocate, mkdirat, openat, renameat, unlinkat};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    absolute: PathBuf,
    fd: OwnedFd,
}

impl Directory {
    /// Makes the directory, parents included, or takes an empty one.
    pub(super) fn create(path: &Path) -> Result<Self, CtfError> {
        let failed = |action| move |source| CtfError::Io { action, path: path.to_owned(), source };
        let not_a_directory = || CtfError::NotADirectory { path: path.to_owned() };
        std::fs::create_dir_all(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => not_a_directory(),
            _ => failed("make")(source),
        })?;
        if let Some(entry) = std::fs::read_dir(path).map_err(failed("read"))?.next() {
            let found = entry.map_err(failed("read"))?.file_name().to_string_lossy().into_owned();
            return Err(CtfError::NotEmpty { path: path.to_owned(), found });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed("open")(errno.into()))?;
        let absolute = std::path::absolute(path).map_err(failed("find"))?;
        Ok(Self { path: path.to_owned(), absolute, fd })
    }

    /// The path that it was made under.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The absolute path at that time.
    pub(super) fn absolute_path(&self) -> &Path {
        &self.absolute
    }

    /// Makes a file, which must not exist yet, and opens it for writing at its end.
    pub(super) fn create_file(&self, name: &str) -> io::Result<File> {
        self.open(name, OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file that was made before, for writing at its end.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        self.open(name, OFlags::empty())
    }

    fn open(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        Ok(File::from(openat(&self.fd, name, flags, mode)?))
    }

    /// Keeps room on the disk for a file that [`Directory::put_whole`] will put there. Where that cannot be done, that will tell.
    pub(super) fn reserve(&self, folder: &str, name: &str, bytes: u64) -> io::Result<()> {
        self.make_folder(folder)?;
        let file = self.open(&temporary(folder, name), OFlags::CREATE)?;
        // Not every file system can, and one that is full has not got the room.
        let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes);
        Ok(())
    }

    /// Puts a whole file into a subdirectory, or none: no reader sees a part of it.
    pub(super) fn put_whole(&self, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make_folder(folder)?;
        let temporary = temporary(folder, name);
        let mut file = self.open(&temporary, OFlags::CREATE)?;
        let written = file.write_all(bytes).and_then(|()| file.set_len(bytes.len() as u64));
        let moved = written.and_then(|()| Ok(renameat(&self.fd, &temporary, &self.fd, format!("{folder}/{name}"))?));
        if moved.is_err() {
            // The part that was written is of no use; that it cannot be removed either changes nothing.
            let _ = unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        moved
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        match mkdirat(&self.fd, folder, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Where a file grows until it is whole.
fn temporary(folder: &str, name: &str) -> String {
    format!("{folder}/.{name}.new")
}
