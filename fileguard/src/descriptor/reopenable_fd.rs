//! A file or directory that is reopened if the program has closed it.

use super::checked_fd::CheckedFd;
use super::guarded_fd::{Descriptor, GuardedFd, Identity};
use super::retry::{is_closed, pause, retried};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Flags for opening a directory inside a directory.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// Prepares a reopened file before its use, for example by locking it.
type Prepare<T> = fn(&T) -> io::Result<()>;

/// An open file or directory with its path. If the program has closed the descriptor, the next access opens the path again; it is an error if the
/// path leads to another file by then. It can be closed between uses, to leave descriptors to the program.
#[derive(Debug)]
pub struct ReopenableFd<T: Descriptor> {
    /// Absolute path.
    path: PathBuf,
    flags: OFlags,
    identity: Identity,
    prepare: Option<Prepare<T>>,
    /// `None` until the next access.
    open: Mutex<Option<Arc<GuardedFd<T>>>>,
}

impl<T: Descriptor> ReopenableFd<T> {
    /// Keeps `held`, which is open at `path`. It is reopened with these flags.
    ///
    /// # Errors
    ///
    /// If the descriptor cannot be examined, or `path` is relative and the working directory is unknown.
    pub fn new(held: T, path: &Path, flags: OFlags) -> io::Result<Self> {
        Self::keeping(CheckedFd::of(held)?, path, flags)
    }

    /// The same for a descriptor that has been checked already.
    ///
    /// # Errors
    ///
    /// The same as for [`ReopenableFd::new`].
    pub fn keeping(opened: CheckedFd<T>, path: &Path, flags: OFlags) -> io::Result<Self> {
        let kept = opened.keep();
        let (path, identity) = (std::path::absolute(path)?, kept.identity());
        let flags = flags.difference(OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC).union(OFlags::CLOEXEC);
        Ok(Self { path, flags, identity, prepare: None, open: Mutex::new(Some(kept)) })
    }

    /// Opens the file or directory at `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or `path` is relative and the working directory is unknown.
    pub fn open(path: &Path, flags: OFlags) -> io::Result<Self> {
        let open = || rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        Self::keeping(retried(|| CheckedFd::opened(T::from(open()?), flags))?, path, flags)
    }

    /// Calls `prepare` after each reopening.
    #[must_use]
    pub fn prepared(mut self, prepare: Prepare<T>) -> Self {
        self.prepare = Some(prepare);
        self
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the path, for example after a rename.
    pub fn rename(&mut self, path: &Path) -> io::Result<()> {
        self.path = std::path::absolute(path)?;
        Ok(())
    }

    /// The open file, for immediate use.
    ///
    /// # Errors
    ///
    /// If it was closed and cannot be reopened.
    pub fn get(&self) -> io::Result<CheckedFd<T>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = open.as_ref().filter(|kept| kept.is_open()) {
            return Ok(CheckedFd::compared(Arc::clone(kept)));
        }
        if open.is_some() {
            pause();
        }
        let opened = rustix::fs::open(&self.path, self.flags, Mode::empty())?;
        let kept = GuardedFd::opened(T::from(opened), self.flags)?;
        if kept.identity() != self.identity {
            return Err(io::Error::new(io::ErrorKind::NotFound, "another file is in its place"));
        }
        self.prepare.map_or(Ok(()), |prepare| prepare(kept.get()?))?;
        Ok(CheckedFd::compared(Arc::clone(open.insert(Arc::new(kept)))))
    }

    /// Closes the descriptor until the next access.
    pub fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// An open directory.
impl ReopenableFd<OwnedFd> {
    /// Makes a system call with the open directory, and repeats it if the program closes the directory meanwhile.
    ///
    /// # Errors
    ///
    /// The errors of the call and of [`ReopenableFd::get`].
    pub fn at<R>(&self, call: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<R>) -> io::Result<R> {
        retried(|| Ok(call(self.get()?.as_fd())?))
    }

    /// Opens a file in the directory. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn file(&self, name: impl AsRef<OsStr>, flags: OFlags, mode: Mode) -> io::Result<CheckedFd<File>> {
        let name = name.as_ref();
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |flags, mode| self.at(|fd| openat(fd, name, flags, mode)).map(File::from);
        match CheckedFd::opened(open(flags, mode)?, flags) {
            // The file exists by now, so do not create it again.
            Err(error) if is_closed(&error) => {
                pause();
                let flags = flags.difference(OFlags::CREATE | OFlags::EXCL);
                retried(|| CheckedFd::opened(open(flags, Mode::empty())?, flags))
            }
            opened => opened,
        }
    }

    /// Opens a directory in the directory. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<CheckedFd<OwnedFd>> {
        let flags = DIRECTORY | OFlags::CLOEXEC;
        retried(|| CheckedFd::opened(self.at(|fd| openat(fd, name.as_ref(), flags, Mode::empty()))?, flags))
    }

    /// Opens a directory in the directory, to be kept for longer. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// The same as for [`directory`](Self::directory).
    pub fn subdirectory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        Self::keeping(self.directory(name)?, &self.path.join(name), DIRECTORY)
    }

    /// Removes a file of the directory.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.at(|fd| unlinkat(fd, name.as_ref(), AtFlags::empty()))
    }

    /// Removes an empty directory of the directory.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove_directory(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.at(|fd| unlinkat(fd, name.as_ref(), AtFlags::REMOVEDIR))
    }

    /// Removes the directory's contents. Symbolic links are not followed. Entries that others remove meanwhile are ignored.
    ///
    /// # Errors
    ///
    /// If an entry cannot be removed.
    pub fn remove_contents(&self) -> io::Result<()> {
        for name in self.names()? {
            let removed = self.remove_file(&name);
            match removed.as_ref().err().and_then(Errno::from_io_error) {
                Some(Errno::NOENT) => {}
                Some(Errno::ISDIR | Errno::PERM) => {
                    self.subdirectory(&name)?.remove_contents()?;
                    self.remove_directory(&name)?;
                }
                _ => removed?,
            }
        }
        Ok(())
    }

    /// The names of its entries, without `.` and `..`, in any order.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        retried(|| super::whole::names(&*self.get()?))
    }
}
