//! Directories that only this user (or a chosen group) can write to, and the files in them.
//!
//! A directory is opened once, without following a symbolic link, and checked before use. All later operations go through the open
//! descriptor, so no other user can substitute another directory. If the program closes the descriptor, the same directory is opened again.

mod author;
mod error;
mod kept;
mod shared;
mod spare;

pub use author::{Author, refused};
pub use error::DirError;
pub use spare::is_no_room;

use crate::group::{group, shared};
use fileguard::{CheckedFd, ReopenableFd};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Mode, OFlags, Stat, Timestamps, UTIME_NOW, chmodat, chownat, fallocate, fchmod,
    fchown, fstat, futimens, mkdirat, mknodat, renameat, statat, utimensat,
};
use rustix::process::{Resource, getrlimit};
use rustix::time::Timespec;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
// O_NONBLOCK: opening a FIFO that was put in place of a file must not block.
const OPEN_FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);
const NOW: Timestamps = {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW as _ };
    Timestamps { last_access: now, last_modification: now }
};

/// An open directory that belongs to this user or group, and that no other user may write to.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    open: ReopenableFd<OwnedFd>,
}

impl PrivateDir {
    /// Opens the directory at `path`; creates it and its missing parents, accessible to this user only.
    pub fn at(path: &Path) -> Result<Self, DirError> {
        if let Some(kept) = Self::kept(path, Self::subdir) {
            return kept;
        }
        let failed = |action, source| DirError::Io { action, path: path.to_owned(), source };
        let existed = path.symlink_metadata().is_ok();
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| failed("make", error))?;
        // The last component is not followed: in a directory like /dev/shm another user could have put a link there.
        let made = Self::open_path(path)?;
        if !existed {
            made.open.get().and_then(|fd| open_to_group(&fd)).map_err(|error| failed("open to the group", error))?;
        }
        made.checked()
    }

    /// Opens the directory at `path`, which must exist.
    pub fn open(path: &Path) -> Result<Self, DirError> {
        if let Some(kept) = Self::kept(path, Self::open_subdir) {
            return kept;
        }
        Self::open_path(path)?.checked()
    }

    fn open_path(path: &Path) -> Result<Self, DirError> {
        let failed = |source| DirError::Io { action: "open", path: path.to_owned(), source };
        Ok(Self { path: path.to_owned(), open: ReopenableFd::open(path, OPEN_DIR).map_err(failed)? })
    }

    fn of(path: PathBuf, opened: CheckedFd<OwnedFd>) -> io::Result<Self> {
        let open = ReopenableFd::keeping(opened, &path, OPEN_DIR)?;
        Ok(Self { path, open })
    }

    /// Opens the directory `name` in this one; creates it if it does not exist.
    pub fn subdir(&self, name: &str) -> Result<Self, DirError> {
        match self.make_subdir(name) {
            Err(DirError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => self.open_subdir(name),
            made => made,
        }
    }

    /// Creates the directory `name` in this one; it must not exist yet.
    pub fn make_subdir(&self, name: &str) -> Result<Self, DirError> {
        if group().is_some() {
            return self.make_shared_subdir(name);
        }
        let made = self.open.at(|fd| mkdirat(fd, name, Mode::RWXU)).and_then(|()| self.open.directory(name));
        let dir = made.and_then(|opened| Self::of(self.path.join(name), opened));
        dir.map_err(|error| self.failed("make", name, error))?.checked()
    }

    /// Opens the directory `name` in this one, which must exist.
    pub fn open_subdir(&self, name: &str) -> Result<Self, DirError> {
        let opened = self.open.directory(name).and_then(|opened| Self::of(self.path.join(name), opened));
        opened.map_err(|error| self.failed("open", name, error))?.checked()
    }

    fn checked(self) -> Result<Self, DirError> {
        let stat = self.stat().map_err(|source| DirError::Io { action: "open", path: self.path.clone(), source })?;
        let user = rustix::process::geteuid().as_raw();
        // Only a member of the group, or root, can have given the directory to the group.
        let is_groups = group().is_some_and(|group| group.as_raw() == stat.st_gid);
        if stat.st_uid != user && !is_groups {
            return Err(DirError::Owner { path: self.path, owner: stat.st_uid, user });
        }
        if stat.st_mode & if is_groups { 0o002 } else { 0o022 } != 0 {
            return Err(DirError::Writable(self.path));
        }
        Ok(self)
    }

    /// Returns the error of `action` on the file `name`, or on the directory itself if `name` is empty.
    pub fn failed(&self, action: &'static str, name: &str, source: io::Error) -> DirError {
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        DirError::Io { action, path, source }
    }

    /// Returns the path under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its descriptor, to be used at once.
    pub fn fd(&self) -> io::Result<CheckedFd<OwnedFd>> {
        self.open.get()
    }

    /// Closes it until the next access, to leave descriptors to the program.
    pub fn close(&self) {
        self.open.close();
    }

    /// Returns the user to whom it belongs.
    ///
    /// # Errors
    ///
    /// If it cannot be inspected.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(self.stat()?.st_uid)
    }

    /// Returns whether it belongs to `user` or to the shared group.
    pub fn is_of(&self, user: u32) -> bool {
        let is_group = |stat: &Stat| group().is_some_and(|group| group.as_raw() == stat.st_gid);
        self.stat().is_ok_and(|stat| stat.st_uid == user || is_group(&stat))
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        self.open.at(|fd| fstat(fd))
    }

    /// Returns when the directory was last changed or [touched](Self::touch); the Unix epoch if unknown.
    pub(crate) fn changed(&self) -> SystemTime {
        let since = |stat: Stat| {
            let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
            Duration::new(u64::try_from(stat.st_mtime).unwrap_or(0), nanos)
        };
        UNIX_EPOCH + self.stat().map_or(Duration::ZERO, since)
    }

    /// Sets the directory's time of change to now. Stores into mapped files change no time stamp: a process that maps files of this
    /// directory calls this to show that it is alive. Ignores errors.
    pub(crate) fn touch(&self) {
        let _ = self.open.at(|fd| futimens(fd, &NOW));
    }

    /// The same for the file `name`.
    pub fn touch_file(&self, name: &str) {
        let _ = self.open.at(|fd| utimensat(fd, name, &NOW, AtFlags::SYMLINK_NOFOLLOW));
    }

    /// Opens the directory again: a `flock` lock belongs to the open file description.
    pub(crate) fn reopen(&self) -> io::Result<CheckedFd<File>> {
        self.open_at(".", OPEN_DIR, Mode::empty())
    }

    /// Returns the names of its entries. Names that are not UTF-8 are left out; this program creates none.
    pub fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.open.names()?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// Length of the file `name`, in bytes.
    pub fn file_len(&self, name: &str) -> io::Result<u64> {
        Ok(self.stamp(name)?.1)
    }

    /// Returns the space that its files use in the file system, in bytes.
    pub fn allocated(&self) -> u64 {
        // The field counts units of 512 bytes, regardless of the file system's block size.
        let allocated = |name: &String| self.stat_of(name).map_or(0, |stat| stat.st_blocks);
        let blocks: i64 = self.names().unwrap_or_default().iter().map(allocated).sum();
        u64::try_from(blocks).unwrap_or(0) * 512
    }

    /// Opens a file, without following a link.
    pub(crate) fn open_at(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<CheckedFd<File>> {
        self.open.file(name, flags | OPEN_FILE, mode)
    }

    /// Opens a file for reading.
    pub fn open_file(&self, name: &str) -> io::Result<CheckedFd<File>> {
        self.open_at(name, OFlags::RDONLY, Mode::empty())
    }

    /// Opens the file `name` for reading and writing; it must belong to the owner or the group of the directory.
    pub(crate) fn open_to_change(&self, name: &str) -> io::Result<CheckedFd<File>> {
        let file = self.open_at(name, OFlags::RDWR, Mode::empty())?;
        let (stat, own) = (fstat(&file)?, self.stat()?);
        if stat.st_uid != own.st_uid && stat.st_gid != own.st_gid {
            let text = "it belongs to another user than its directory";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(file)
    }

    /// Returns inode and length of the file `name`: a stamp that changes when the file is replaced or grows.
    pub(crate) fn stamp(&self, name: &str) -> io::Result<(u64, u64)> {
        let stat = self.stat_of(name)?;
        Ok((stat.st_ino, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    fn stat_of(&self, name: &str) -> io::Result<Stat> {
        self.open.at(|fd| statat(fd, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Creates the file `name`, which must not exist yet, for reading and writing; the caller will write `len` bytes.
    pub fn create_file(&self, name: &str, len: u64) -> io::Result<CheckedFd<File>> {
        self.create_unshared(name, len).and_then(|made| shared(&made).map(|()| made))
    }

    /// Opens the file `name` as [`PrivateDir::open_to_change`] does; creates it if it does not exist.
    pub(crate) fn open_or_create(&self, name: &str, len: u64) -> io::Result<CheckedFd<File>> {
        loop {
            match self.open_to_change(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => match self.create_file(name, len) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => return made,
                },
                opened => return opened,
            }
        }
    }

    /// Opens or creates a file of `len` bytes that will be mapped.
    pub(crate) fn open_allocated(&self, name: &str, len: u64) -> io::Result<CheckedFd<File>> {
        let file = self.open_or_create(name, len)?;
        Self::allocate(&file, len)?;
        Ok(file)
    }

    /// Allocates the space of a shared file. Each process does, because the creator may not have done so yet, and a store to a page without
    /// allocated space would end the program.
    pub(crate) fn allocate(file: &File, len: u64) -> io::Result<()> {
        Ok(fallocate(file, FallocateFlags::empty(), 0, len)?)
    }

    fn create_unshared(&self, name: &str, len: u64) -> io::Result<CheckedFd<File>> {
        // Exceeding the file-size limit would not only fail, but also send SIGXFSZ to the traced program.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| len > limit) {
            let text = "the limit on file sizes is lower; raise it (`ulimit -f`)";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        self.open_at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, OWNER)
    }

    /// Creates the named pipe `name`, which must not exist yet.
    pub(crate) fn make_pipe(&self, name: &str) -> io::Result<()> {
        self.open.at(|fd| mknodat(fd, name, FileType::Fifo, OWNER, 0))?;
        let Some(group) = group() else { return Ok(()) };
        self.open.at(|fd| chownat(fd, name, None, Some(group), AtFlags::SYMLINK_NOFOLLOW))?;
        self.open.at(|fd| chmodat(fd, name, OWNER | Mode::RGRP | Mode::WGRP, AtFlags::empty()))
    }

    /// Reads the file `name`; fails if it is longer than `most` bytes.
    pub fn read_file(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        fileguard::retried(|| Self::read_open(&*self.open_file(name)?, most))
    }

    fn read_open(file: &File, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("the file is longer than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Opens the file `name` for appending; creates it if it does not exist.
    pub fn append_file(&self, name: &str) -> io::Result<CheckedFd<File>> {
        self.make_or_open(name, OFlags::WRONLY | OFlags::APPEND)
    }

    /// Creates the file `name` for access by `flags`, or opens it if it exists.
    pub(crate) fn make_or_open(&self, name: &str, flags: OFlags) -> io::Result<CheckedFd<File>> {
        match self.open_at(name, flags | OFlags::CREATE | OFlags::EXCL, OWNER) {
            Ok(made) => shared(&made).map(|()| made),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open_at(name, flags, Mode::empty()),
            Err(error) => Err(error),
        }
    }

    /// Appends to the existing file `name`, in one write.
    pub fn append_if_there(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        (&*self.open_at(name, OFlags::WRONLY | OFlags::APPEND, Mode::empty())?).write_all(bytes)
    }

    /// Like [`PrivateDir::put_whole`], for the only writer of this file: first removes a temporary file that a killed predecessor left.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove_file(&Self::temporary(name));
        self.put_whole(name, bytes)
    }

    /// Writes the file `name` atomically: readers never see a partial file.
    pub fn put_whole(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put_made(name, bytes, Self::create_file)
    }

    /// The same with a file that `make` creates.
    fn put_made(
        &self,
        name: &str,
        bytes: &[u8],
        make: fn(&Self, &str, u64) -> io::Result<CheckedFd<File>>,
    ) -> io::Result<()> {
        let temporary = Self::temporary(name);
        fileguard::retried(|| {
            let written = make(self, &temporary, bytes.len() as u64).and_then(|file| (&*file).write_all(bytes));
            let moved = written.and_then(|()| self.open.at(|fd| renameat(fd, &temporary, fd, name)));
            if moved.is_err() {
                self.remove_file(&temporary);
            }
            moved
        })
    }

    /// Returns the name of a file until it is complete.
    pub fn temporary(name: &str) -> String {
        format!(".{name}.new")
    }

    /// Removes the file `name`; ignores errors.
    pub fn remove_file(&self, name: &str) {
        let _ = self.open.remove_file(name);
    }

    /// Removes the directory `name` if it is empty; ignores errors.
    pub fn remove_empty(&self, name: &str) {
        let _ = self.open.remove_directory(name);
    }

    /// Removes the directory `name` with its files, if it exists.
    pub fn remove_subdir(&self, name: &str) {
        if let Ok(dir) = self.open_subdir(name) {
            self.remove_with_files(name, &dir);
        }
    }

    /// Removes the directory `name`, open as `dir`, with its files. Keeps subdirectories, and the directory if it has any.
    pub(crate) fn remove_with_files(&self, name: &str, dir: &Self) {
        for file in dir.names().unwrap_or_default() {
            dir.remove_file(&file);
        }
        self.remove_empty(name);
    }
}

/// Gives access to the group in `TRACEPOINT_GROUP`, if set. Does nothing if another user created the directory first.
fn open_to_group(fd: impl AsFd + Copy) -> io::Result<()> {
    let Some(group) = group() else { return Ok(()) };
    if fstat(fd)?.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    fchown(fd, None, Some(group))?;
    Ok(fchmod(fd, Mode::RWXU | Mode::RWXG)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    #[test]
    fn a_directory_of_doubtful_ownership_is_refused() -> Outcome {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("a/b");
        let dir = PrivateDir::at(&path)?;
        assert_eq!(dir.path(), path);
        assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o700);

        symlink(&path, temp.path().join("a/link"))?;
        assert!(matches!(PrivateDir::at(&temp.path().join("a/link")), Err(DirError::Io { action: "open", .. })));
        let parent = PrivateDir::at(&temp.path().join("a"))?;
        assert!(matches!(parent.subdir("link"), Err(DirError::Io { action: "open", .. })));

        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777))?;
        assert!(matches!(PrivateDir::at(&path), Err(DirError::Writable { .. })));
        assert!(matches!(parent.subdir("b"), Err(DirError::Writable { .. })));
        Ok(())
    }

    #[test]
    fn files_are_replaced_atomically() -> Outcome {
        let temp = tempfile::tempdir()?;
        let dir = PrivateDir::at(temp.path())?;
        dir.put_whole("metadata", b"text")?;
        assert_eq!(dir.names()?, ["metadata"]);
        assert_eq!(dir.file_len("metadata")?, 4);
        assert!(dir.create_file("metadata", 0).is_err(), "it is there already");
        symlink("elsewhere", temp.path().join("link"))?;
        assert!(dir.create_file("link", 0).is_err() && dir.open_file("link").is_err(), "links are not followed");
        Ok(())
    }
}
