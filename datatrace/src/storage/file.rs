//! A dt file on disk: it appears whole under its name, and belongs to one writer.
//!
//! It is made beside its name, gets its header, and only then its name: there is no instant at which somebody finds a file without
//! a header. A lock of the kernel's (`flock`), which ends with the process, tells others that it is being written; an older file
//! of the name is replaced only while nobody holds that lock.

use super::Storage;
use crate::error::Error;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, fstatvfs};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// A dt file on disk, written at positions.
#[derive(Debug)]
pub struct FileStorage {
    file: File,
    path: PathBuf,
    unnamed: Option<TempPath>,
}

impl FileStorage {
    /// A new file that is to be called `path`; it has no name until [`Self::publish`].
    pub(crate) fn begin(path: &Path) -> Result<Self, Error> {
        let directory = directory_of(path);
        let mut prefix = OsString::from(".");
        prefix.push(path.file_stem().unwrap_or_default());
        let made = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".new")
            // What the umask leaves of it, as with any file that a program makes.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory);
        let (file, unnamed) = made.map_err(|error| Error::io(directory, "create a trace file", error))?.into_parts();
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| Error::io(path, "lock the trace file", error.into()))?;
        Ok(Self { file, path: path.to_owned(), unnamed: Some(unnamed) })
    }

    /// Gives the file its name. A file of that name that nobody is writing is replaced if `replace` says so; otherwise it is
    /// [`Error::InUse`].
    pub(crate) fn publish(&mut self, replace: bool) -> Result<(), Error> {
        while let Some(unnamed) = self.unnamed.take() {
            let Err(error) = unnamed.persist_noclobber(&self.path) else {
                return Ok(());
            };
            self.unnamed = Some(error.path);
            if error.error.kind() != io::ErrorKind::AlreadyExists {
                return Err(Error::io(&self.path, "name the trace file", error.error));
            }
            if !replace {
                return Err(Error::InUse { path: self.path.clone() });
            }
            self.replace()?;
        }
        Ok(())
    }

    /// Takes the place of the file that has the name. Holds that file's lock meanwhile: of two that want to replace it, one does.
    /// Where the file has gone or changed before it was locked, nothing is done, and the caller tries again.
    fn replace(&mut self) -> Result<(), Error> {
        let failed = |error| Error::io(&self.path, "replace the older trace file", error);
        let older = match self.path.symlink_metadata() {
            Ok(older) if older.is_file() => older,
            Ok(_) => return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "it is not a regular file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let held = match File::open(&self.path) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        match flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::InUse { path: self.path.clone() }),
            Err(error) => return Err(failed(error.into())),
        }
        let same =
            |one: &std::fs::Metadata, other: &std::fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        let now = self.path.symlink_metadata();
        let unchanged =
            now.is_ok_and(|now| same(&now, &older)) && held.metadata().is_ok_and(|held| same(&held, &older));
        let Some(unnamed) = self.unnamed.take_if(|_| unchanged) else {
            return Ok(());
        };
        if let Err(error) = unnamed.persist(&self.path) {
            self.unnamed = Some(error.path);
            return Err(failed(error.error));
        }
        Ok(())
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

impl Storage for FileStorage {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn allocate(&mut self, length: u64) -> io::Result<()> {
        // Some file systems take all the room there is before they find that it is not enough.
        let room = fstatvfs(&self.file)?;
        if length > room.f_bavail.saturating_mul(room.f_frsize) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match fallocate(&self.file, FallocateFlags::empty(), 0, length) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.set_length(length),
            Err(error) => Err(error.into()),
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
