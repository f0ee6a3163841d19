//! A ring file that can be closed while nothing reads it: who reads the rings of a thousand processes may not open that many files.

use super::bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A ring file, open for reading and writing, or closed until it is accessed.
#[derive(Debug)]
pub(crate) struct RingFile {
    path: PathBuf,
    /// Device and inode: another file of this name is not opened in its place.
    id: (u64, u64),
    open: Mutex<Option<File>>,
}

impl RingFile {
    pub(crate) fn new(path: &Path, file: File) -> io::Result<Self> {
        let id = id(&file)?;
        Ok(Self { path: path.to_owned(), id, open: Mutex::new(Some(file)) })
    }

    /// Closes it; the next access opens it again.
    pub(crate) fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Writes at `offset`.
    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|file| file.write_all_at(bytes, offset))
    }

    fn with<R>(&self, act: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = Some(self.reopen()?);
        }
        open.as_ref().map_or_else(|| Err(io::ErrorKind::NotFound.into()), act)
    }

    fn reopen(&self) -> io::Result<File> {
        // A FIFO that was put in its place must not block.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path)?;
        if id(&file)? == self.id {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "another file is in its place"))
        }
    }
}

fn id(file: &File) -> io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

impl Bytes for RingFile {
    fn length(&self) -> io::Result<u64> {
        self.with(Bytes::length)
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|file| file.fill(buffer, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;

    #[test]
    fn a_closed_file_is_opened_again_unless_another_one_is_in_its_place() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("0-0.ring");
        fs::write(&path, b"ring")?;
        let file = Arc::new(RingFile::new(&path, File::options().read(true).write(true).open(&path)?)?);
        file.close();
        let mut bytes = [0; 4];
        file.fill(&mut bytes, 0)?;
        assert_eq!(&bytes, b"ring");
        file.close();
        file.write_all_at(b"w", 0)?;
        assert_eq!(fs::read(&path)?, b"wing");
        fs::rename(&path, temp.path().join("other"))?;
        fs::write(&path, b"fake")?;
        file.fill(&mut bytes, 0)?;
        assert_eq!(&bytes, b"wing", "it is open");
        file.close();
        assert_eq!(file.fill(&mut bytes, 0).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        Ok(())
    }
}
