//! An open directory, whose entries are accessed by its descriptor.

use super::Opening;
use fileguard::{CheckedFd, ReopenableFd, retried};
use rustix::fs::{Mode, OFlags, mkdirat, renameat};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The mode of directories in it, before the process's umask.
const FOLDER: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);
/// The mode of files in it.
const FILE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// A directory. It is reopened if the program closes its descriptor.
#[derive(Debug)]
pub(super) struct OpenDirectory(ReopenableFd<OwnedFd>);

impl OpenDirectory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        ReopenableFd::open(path, FLAGS).map(Self)
    }

    pub(super) fn subdirectory(&self, name: &str) -> io::Result<Self> {
        self.0.subdirectory(name).map(Self)
    }

    /// Closes it until the next access.
    pub(super) fn close(&self) {
        self.0.close();
    }

    /// Returns the absolute path when it was opened.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        self.0.names()
    }

    /// Opens a file for writing.
    pub(super) fn file(&self, name: &str, opening: Opening) -> io::Result<CheckedFd<File>> {
        let flags = match opening {
            Opening::New => OFlags::APPEND | OFlags::CREATE | OFlags::EXCL,
            Opening::Existing => OFlags::APPEND,
            Opening::Start => OFlags::CREATE,
        };
        self.0.file(name, flags | OFlags::WRONLY | OFlags::NOFOLLOW, FILE)
    }

    pub(super) fn create_directory(&self, name: &str) -> io::Result<()> {
        self.0.at(|fd| mkdirat(fd, name, FOLDER))
    }

    /// Renames a file; one with the new name is replaced.
    pub(super) fn rename(&self, name: &str, new: &str) -> io::Result<()> {
        self.0.at(|fd| renameat(fd, name, fd, new))
    }

    /// Moves a file to another directory.
    pub(super) fn move_file(&self, name: &str, to: &Self) -> io::Result<()> {
        retried(|| Ok(renameat(self.0.get()?, name, to.0.get()?, name)?))
    }

    pub(super) fn remove_file(&self, name: &str) -> io::Result<()> {
        self.0.remove_file(name)
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&self, name: &str) -> io::Result<()> {
        self.0.remove_directory(name)
    }

    pub(super) fn remove_contents(&self) -> io::Result<()> {
        self.0.remove_contents()
    }
}
