//! A dt file on disk. It appears under its name only when it has a header, and belongs to one writer.
//!
//! It is created under a temporary name, gets its header, and then its final name, so that no process finds a file without a header. A lock
//! (`flock`), which ends with the process, shows that the file is being written. An existing file with the same name is replaced only if no process
//! holds its lock.

#[cfg_attr(not(target_os = "linux"), path = "file/elsewhere.rs")]
mod system;

use super::Storage;
use super::header_page::HeaderPage;
use crate::error::Error;
use crate::header::HEADER_SIZE;
use fileguard::{FileExt, retried};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use system::{KeptFile, is_same, keep, lock, with_rights};
use tempfile::TempPath;

/// A dt file on disk, written by positional writes.
#[derive(Debug)]
pub struct FileStorage {
    file: KeptFile,
    path: PathBuf,
    unnamed: Option<TempPath>,
    /// The process that created it.
    process: u32,
    header: HeaderWrites,
}

/// The method of writing the header.
#[derive(Debug)]
enum HeaderWrites {
    /// By positional writes.
    Positional,
    /// Through a mapping, once the file has a header.
    ToBeMapped,
    Mapped(HeaderPage),
}

impl FileStorage {
    /// Creates a file to be named `path`. It has no name until [`DtWriter::publish`](crate::DtWriter::publish).
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be created in its directory.
    pub fn begin(path: &Path) -> Result<Self, Error> {
        let directory = directory_of(path);
        let mut prefix = OsString::from(".");
        prefix.push(path.file_stem().unwrap_or_default());
        let mut builder = tempfile::Builder::new();
        let made = with_rights(builder.prefix(&prefix).suffix(".new")).tempfile_in(directory);
        let (file, unnamed) = made.map_err(|error| not_created(directory, error))?.into_parts();
        let file = keep(file, &unnamed).map_err(|error| Error::io(path, "keep the trace file", error))?;
        file.get().and_then(|file| lock(&file)).map_err(|error| Error::io(path, "lock the trace file", error))?;
        let (path, process) = (path.to_owned(), process::id());
        Ok(Self { file, path, unnamed: Some(unnamed), process, header: HeaderWrites::Positional })
    }

    /// Stores the header through a mapping of the file's first page, which saves two system calls per buffer. If that is not possible
    /// (on machines other than x86-64, or file systems whose reads do not see mappings), the header is written by positional writes.
    ///
    /// If another process truncates the file, a SIGBUS handler keeps the program alive. The handler is installed for the process, and passes other
    /// signals on. Truncation still ends the program in a thread that blocks SIGBUS, in a forked child, or if the program has a handler that does not
    /// pass signals on.
    #[must_use]
    pub fn map_header(mut self) -> Self {
        self.header = HeaderWrites::ToBeMapped;
        self
    }

    /// Names the file. An existing file with that name that no process is writing is replaced if `replace` is set; otherwise it is an
    /// [`Error::Exists`].
    pub(crate) fn publish(&mut self, replace: bool) -> Result<(), Error> {
        while let Some(unnamed) = self.unnamed.take() {
            let Err(error) = unnamed.persist_noclobber(&self.path) else {
                return self.named();
            };
            self.unnamed = Some(error.path);
            if error.error.kind() != io::ErrorKind::AlreadyExists {
                return Err(Error::io(&self.path, "name the trace file", error.error));
            }
            let Some(older) = self.older()? else { continue };
            if !replace {
                return Err(Error::Exists(self.path.clone()));
            }
            self.replace(&older)?;
        }
        Ok(())
    }

    /// The existing file with that name, locked, so that only one process replaces it. `None` if it was removed in the meantime.
    fn older(&self) -> Result<Option<File>, Error> {
        match self.path.symlink_metadata() {
            Ok(older) if older.is_file() => {}
            Ok(_) => {
                return Err(self.not_replaced(io::Error::new(io::ErrorKind::AlreadyExists, "it is not a regular file")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.not_replaced(error)),
        }
        let held = match File::open(&self.path) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.not_replaced(error)),
        };
        match lock(&held) {
            Ok(()) => Ok(Some(held)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Error::InUse(self.path.clone())),
            Err(error) => Err(self.not_replaced(error)),
        }
    }

    /// Replaces the locked file. If another file has the name by now, does nothing; the caller retries.
    fn replace(&mut self, older: &File) -> Result<(), Error> {
        let now = self.path.symlink_metadata();
        let unchanged = now.is_ok_and(|now| older.metadata().is_ok_and(|older| is_same(&now, &older)));
        let Some(unnamed) = self.unnamed.take_if(|_| unchanged) else {
            return Ok(());
        };
        if let Err(error) = unnamed.persist(&self.path) {
            self.unnamed = Some(error.path);
            return Err(self.not_replaced(error.error));
        }
        self.named()
    }

    /// Records that the file has its name.
    fn named(&mut self) -> Result<(), Error> {
        self.file.rename(&self.path).map_err(|error| Error::io(&self.path, "name the trace file", error))
    }

    fn write_header(&mut self, header: &[u8; HEADER_SIZE]) -> io::Result<()> {
        if let HeaderWrites::Mapped(page) = &mut self.header {
            if page.store(header) {
                return Ok(());
            }
            // A positional write determines whether the header can be written at all.
            self.header = HeaderWrites::Positional;
        }
        retried(|| self.file.get()?.write_all_at(header, 0))?;
        if matches!(self.header, HeaderWrites::ToBeMapped) {
            self.header = HeaderPage::of(&*self.file.get()?).map_or(HeaderWrites::Positional, HeaderWrites::Mapped);
        }
        Ok(())
    }

    fn not_replaced(&self, error: io::Error) -> Error {
        Error::io(&self.path, "replace the older trace file", error)
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

impl Drop for FileStorage {
    fn drop(&mut self) {
        if self.process != process::id() {
            // The unnamed file belongs to the parent process, which removes it.
            std::mem::forget(self.unnamed.take());
        }
    }
}

impl Storage for FileStorage {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match <&[u8; HEADER_SIZE]>::try_from(bytes) {
            Ok(header) if offset == 0 => self.write_header(header),
            _ => retried(|| self.file.get()?.write_all_at(bytes, offset)),
        }
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        retried(|| self.file.get()?.set_len(length))
    }

    fn allocate(&mut self, length: u64) -> io::Result<()> {
        if system::reserve(&*self.file.get()?, length)? { Ok(()) } else { self.set_length(length) }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// The error of creating a file in `directory`, without its temporary name.
fn not_created(directory: &Path, error: io::Error) -> Error {
    let source = match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), "there is no such directory; make it, or name a file in another one")
        }
        kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotADirectory) => {
            io::Error::new(kind, format!("{kind}; name a file in another directory"))
        }
        _ => error,
    };
    Error::io(directory, "create a trace file", source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_errors_advise_a_remedy() {
        let temp = tempfile::tempdir().expect("a directory");
        for (place, expected) in
            [("none/x.dt", "there is no such directory; make it"), ("file/x.dt", "another directory")]
        {
            std::fs::write(temp.path().join("file"), "").expect("writes");
            let error = FileStorage::begin(&temp.path().join(place)).expect_err("no directory").to_string();
            assert!(error.contains(expected) && !error.contains(".new"), "{error}");
        }
    }
}
