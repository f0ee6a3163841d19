//! The output directory. It is kept open, so that it may be renamed and the working directory may change. A process with very many outputs closes it
//! between accesses, and a program may close all descriptors; in these cases it must not be renamed.

#[cfg_attr(not(target_os = "linux"), path = "directory/by_path.rs")]
mod open_directory;

use super::CtfError;
use crate::system;
use fileguard::CheckedFd;
use open_directory::OpenDirectory;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// How a file is opened for writing.
#[derive(Clone, Copy, Debug)]
enum Opening {
    /// For appending; it must not exist.
    New,
    /// For appending; it exists.
    Existing,
    /// From its start on; it may exist.
    Start,
}

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    open: OpenDirectory,
}

impl Directory {
    /// Creates the directory and its parents, or uses an existing empty one.
    pub(super) fn create(path: &Path) -> Result<Self, CtfError> {
        let failed = |action| move |source| CtfError::Io { action, path: path.to_owned(), source };
        let not_a_directory = || CtfError::NotADirectory(path.to_owned());
        std::fs::create_dir_all(path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => not_a_directory(),
            _ => failed("make")(source),
        })?;
        let opened = Self::open(path).map_err(failed("open"))?;
        if let Some(found) = opened.open.names().map_err(failed("read"))?.first() {
            return Err(CtfError::NotEmpty { path: path.to_owned(), found: found.to_string_lossy().into_owned() });
        }
        Ok(opened)
    }

    /// Opens an existing directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), open: OpenDirectory::open(path)? })
    }

    /// Closes it until the next access.
    pub(super) fn close(&self) {
        self.open.close();
    }

    /// Returns the path that was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the absolute path when it was opened.
    pub(super) fn absolute_path(&self) -> &Path {
        self.open.path()
    }

    /// Creates a file, which must not exist, and opens it for appending.
    pub(super) fn create_file(&self, name: &str) -> io::Result<CheckedFd<File>> {
        self.open.file(name, Opening::New)
    }

    /// Opens an existing file for appending.
    pub(super) fn open_file(&self, name: &str) -> io::Result<CheckedFd<File>> {
        self.open.file(name, Opening::Existing)
    }

    /// Reserves disk space for a file that [`Directory::put_whole`] will write. If the space cannot be reserved, that call may fail.
    pub(super) fn reserve(&self, folder: &str, name: &str, bytes: u64) -> io::Result<()> {
        self.make_folder(folder)?;
        let file = self.open.file(&temporary(folder, name), Opening::Start)?;
        // Not every file system supports this, and the disk may be full.
        let _ = system::reserve(&file, 0, bytes);
        Ok(())
    }

    /// Puts a file into a subdirectory atomically: readers never see part of it.
    pub(super) fn put_whole(&self, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(folder, name, &format!("{folder}/{name}"), bytes)
    }

    /// Puts a file into this directory atomically. It is written in the subdirectory `folder`.
    pub(super) fn put_whole_here(&self, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(folder, name, name, bytes)
    }

    fn put(&self, folder: &str, name: &str, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.make_folder(folder)?;
        let temporary = temporary(folder, name);
        let written = fileguard::retried(|| {
            // Written from the start, over the remains of an earlier attempt, so that the reserved space is used.
            let file = self.open.file(&temporary, Opening::Start)?;
            (&*file).write_all(bytes).and_then(|()| file.set_len(bytes.len() as u64))
        });
        let moved = written.and_then(|()| self.open.rename(&temporary, path));
        if moved.is_err() {
            // The partial file is useless; if it cannot be removed, it stays.
            let _ = self.remove_file(&temporary);
        }
        moved
    }

    /// Creates a subdirectory, which must not exist.
    pub(super) fn create_subdirectory(&self, name: &str) -> io::Result<Self> {
        self.open.create_directory(name)?;
        self.open_subdirectory(name)
    }

    pub(super) fn open_subdirectory(&self, name: &str) -> io::Result<Self> {
        Ok(Self { path: self.path.join(name), open: self.open.subdirectory(name)? })
    }

    /// Moves a file to another directory.
    pub(super) fn move_file(&self, name: &str, to: &Self) -> io::Result<()> {
        self.open.move_file(name, &to.open)
    }

    /// Removes the files of a trace in which nothing was recorded.
    pub(super) fn remove_contents_begun(&self) -> io::Result<()> {
        self.remove_file("metadata")?;
        for name in [".account.json.new", ".metadata.new", "account.json"] {
            self.remove_file(&format!(".account/{name}"))?;
        }
        unless(ErrorKind::NotFound, self.open.remove_directory(".account"))
    }

    /// Like [`remove_contents_begun`](Self::remove_contents_begun), and removes the directory itself. Does nothing if it contains anything else.
    pub(super) fn remove_begun(&self) -> io::Result<()> {
        if self.remove_if_begun()? { std::fs::remove_dir(self.absolute_path()) } else { Ok(()) }
    }

    /// Like [`remove_begun`](Self::remove_begun), for the subdirectory `name`, which is open as `directory`.
    pub(super) fn remove_begun_subdirectory(&self, name: &str, directory: &Self) -> io::Result<()> {
        if directory.remove_if_begun()? {
            self.open.remove_directory(name)?;
        }
        Ok(())
    }

    /// Removes the files of a trace in which nothing was recorded, unless the directory contains anything else. Returns whether they were removed.
    fn remove_if_begun(&self) -> io::Result<bool> {
        let is_begun = self.open.names()?.iter().all(|name| name == "metadata" || name == ".account");
        if is_begun {
            self.remove_contents_begun()?;
        }
        Ok(is_begun)
    }

    /// Removes the subdirectory `name` with the trace in it: first its `metadata`, so that a process killed in between leaves no partial trace. Uses
    /// the open directory, even if that was renamed and another one has its path.
    pub(super) fn remove_trace(&self, name: &str, metadata: &str) -> io::Result<()> {
        match self.open_subdirectory(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            opened => {
                let trace = opened?;
                trace.remove_file(metadata)?;
                trace.open.remove_contents()?;
            }
        }
        self.open.remove_directory(name)
    }

    /// Removes a file, if it exists.
    fn remove_file(&self, name: &str) -> io::Result<()> {
        unless(ErrorKind::NotFound, self.open.remove_file(name))
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        unless(ErrorKind::AlreadyExists, self.open.create_directory(folder))
    }
}

/// Returns the result of a call, with the error `done` as success because nothing was left to do.
fn unless(done: ErrorKind, outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|error| if error.kind() == done { Ok(()) } else { Err(error) })
}

/// Returns the name of a file until it is complete.
fn temporary(folder: &str, name: &str) -> String {
    format!("{folder}/.{name}.new")
}
