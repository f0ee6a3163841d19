//! The directory: made or found empty, then held open, so that renaming it or changing the working directory does no harm.

use super::CtfError;
use rustix::fs::{AtFlags, Dir, FallocateFlags, Mode, OFlags, fallocate, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Who may do what with a directory in it, if the process's umask lets them.
const FOLDER: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);

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
        Self::open(path).map_err(failed("open"))
    }

    /// Opens one that is there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { path: path.to_owned(), absolute: std::path::absolute(path)?, fd })
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
        self.file(name, OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file that was made before, for writing at its end.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        self.file(name, OFlags::APPEND)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        Ok(File::from(openat(&self.fd, name, flags, mode)?))
    }

    /// Keeps room on the disk for a file that [`Directory::put_whole`] will put there. Where that cannot be done, that will tell.
    pub(super) fn reserve(&self, folder: &str, name: &str, bytes: u64) -> io::Result<()> {
        self.make_folder(folder)?;
        let file = self.file(&temporary(folder, name), OFlags::CREATE)?;
        // Not every file system can, and one that is full has not got the room.
        let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes);
        Ok(())
    }

    /// Puts a whole file into a subdirectory, or none: no reader sees a part of it.
    pub(super) fn put_whole(&self, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make_folder(folder)?;
        let temporary = temporary(folder, name);
        // From its begin, whatever an earlier try has left in it: the room that was kept stays.
        let mut file = self.file(&temporary, OFlags::CREATE)?;
        let written = file.write_all(bytes).and_then(|()| file.set_len(bytes.len() as u64));
        let moved = written.and_then(|()| Ok(renameat(&self.fd, &temporary, &self.fd, format!("{folder}/{name}"))?));
        if moved.is_err() {
            // The part that was written is of no use; that it cannot be removed either changes nothing.
            let _ = unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        moved
    }

    /// Makes a directory in it, which must not be there yet.
    pub(super) fn create_subdirectory(&self, name: &str) -> io::Result<Self> {
        mkdirat(&self.fd, name, FOLDER)?;
        self.open_subdirectory(name)
    }

    /// Opens a directory in it.
    pub(super) fn open_subdirectory(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty())?;
        Ok(Self { path: self.path.join(name), absolute: self.absolute.join(name), fd })
    }

    /// Moves a file to another directory.
    pub(super) fn move_file(&self, name: &str, to: &Self) -> io::Result<()> {
        Ok(renameat(&self.fd, name, &to.fd, name)?)
    }

    /// Removes the files of a trace in which nothing was recorded yet.
    pub(super) fn remove_contents_begun(&self) -> io::Result<()> {
        self.remove_file("metadata")?;
        for name in [".account.json.new", "account.json"] {
            self.remove_file(&format!("account/{name}"))?;
        }
        match unlinkat(&self.fd, "account", AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The same, and the directory with them; nothing, if there is anything else in it.
    pub(super) fn remove_begun(&self) -> io::Result<()> {
        if self.remove_if_begun()? { std::fs::remove_dir(&self.absolute) } else { Ok(()) }
    }

    /// The same of the directory `name` in this one, open as `directory`.
    pub(super) fn remove_begun_subdirectory(&self, name: &str, directory: &Self) -> io::Result<()> {
        if directory.remove_if_begun()? {
            unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    /// Removes the files of a trace in which nothing was recorded, unless there is anything else; whether nothing else was there.
    fn remove_if_begun(&self) -> io::Result<bool> {
        let is_begun = self.names()?.iter().all(|name| matches!(name.to_bytes(), b"metadata" | b"account"));
        if is_begun {
            self.remove_contents_begun()?;
        }
        Ok(is_begun)
    }

    /// Removes the directory `name` with the trace in it; its `metadata` first, so that whoever is killed leaves no part of a trace.
    /// Wherever this directory was moved to, and whatever is where it was.
    pub(super) fn remove_trace(&self, name: &str, metadata: &str) -> io::Result<()> {
        match self.open_subdirectory(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => {
                let trace = opened?;
                trace.remove_file(metadata)?;
                trace.remove_contents()?;
            }
        }
        Ok(unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes all that is in it.
    fn remove_contents(&self) -> io::Result<()> {
        for name in self.names()? {
            match unlinkat(&self.fd, name.as_c_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    let text = name.to_str().map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
                    self.open_subdirectory(text)?.remove_contents()?;
                    unlinkat(&self.fd, text, AtFlags::REMOVEDIR)?;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// The names of what is in it.
    fn names(&self) -> io::Result<Vec<CString>> {
        let names = Dir::read_from(&self.fd)?.map(|entry| Ok(entry?.file_name().to_owned()));
        let names = names.collect::<io::Result<Vec<CString>>>()?;
        Ok(names.into_iter().filter(|name| !matches!(name.to_bytes(), b"." | b"..")).collect())
    }

    /// Removes a file, if it is there.
    fn remove_file(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn make_folder(&self, folder: &str) -> io::Result<()> {
        match mkdirat(&self.fd, folder, FOLDER) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Where a file grows until it is whole.
fn temporary(folder: &str, name: &str) -> String {
    format!("{folder}/.{name}.new")
}
