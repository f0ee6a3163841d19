//! Sources of bytes: a file, read through a window of bounded size, or memory, to which more may be added.
//!
//! A file is not mapped: another process may truncate it at any time, which must cause an error and no signal.

use fileguard::{FileExt, GuardedFd};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::error::ReadError;

/// Size of the part of a file kept in memory, unless a single value needs more.
const WINDOW: usize = 64 << 10;

/// Bytes at offsets.
pub(crate) trait Source {
    /// The number of bytes.
    fn length(&self) -> u64;

    /// The bytes from `offset` on: at least `least`, or fewer at the end of the source.
    fn bytes(&mut self, offset: u64, least: usize) -> io::Result<&[u8]>;

    /// Offset of the first packet.
    fn first(&mut self) -> u64 {
        0
    }

    /// Offset of the packet after the one at `offset` with `size` bytes; the length of the source, or more, if there is none.
    fn following(&mut self, offset: u64, size: u64) -> u64 {
        offset.saturating_add(size)
    }
}

impl Source for &[u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn bytes(&mut self, offset: u64, _least: usize) -> io::Result<&[u8]> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        Ok(&self[start..])
    }
}

/// A file with a moving window in memory. Its length is read once, at the start.
#[derive(Clone, Debug)]
pub(crate) struct FileWindow {
    file: Arc<GuardedFd<File>>,
    length: u64,
    /// Size of the part kept in memory, unless a single value needs more.
    size: usize,
    start: u64,
    held: Vec<u8>,
}

impl FileWindow {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(GuardedFd::new(file)?), length, size: WINDOW, start: 0, held: Vec::new() })
    }

    /// The same window, with this size from now on.
    pub(crate) fn resized(self, size: usize) -> Self {
        Self { size: size.max(WINDOW), ..self }
    }

    /// Another window of this size on the same file.
    pub(crate) fn again(&self, size: usize) -> Self {
        Self { file: Arc::clone(&self.file), length: self.length, size, start: 0, held: Vec::new() }
    }
}

impl Source for FileWindow {
    fn length(&self) -> u64 {
        self.length
    }

    fn bytes(&mut self, offset: u64, least: usize) -> io::Result<&[u8]> {
        let rest = self.length.saturating_sub(offset);
        let least = rest.min(least as u64) as usize;
        let skip = offset.wrapping_sub(self.start);
        let covered = offset >= self.start && skip.saturating_add(least as u64) <= self.held.len() as u64;
        if !covered {
            let wanted = rest.min(least.max(self.size) as u64) as usize;
            self.start = offset;
            self.held.resize(wanted, 0);
            let mut filled = 0;
            while filled < wanted {
                match self.file.get()?.read_at(&mut self.held[filled..], offset + filled as u64) {
                    // The file was truncated since its length was read.
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.held.clear();
                        return Err(error);
                    }
                }
            }
            self.held.truncate(filled);
        }
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.held.len());
        Ok(&self.held[skip..])
    }
}

/// Packets that arrive over time. Only the most recent ones are in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct FedWindow {
    /// Offset of the bytes in memory: the number of all bytes before them.
    start: u64,
    held: Vec<u8>,
}

impl FedWindow {
    /// Replaces the bytes in memory by the following ones.
    pub(crate) fn feed(&mut self, bytes: Vec<u8>) {
        self.start = self.length();
        self.held = bytes;
    }
}

impl Source for FedWindow {
    fn length(&self) -> u64 {
        self.start + self.held.len() as u64
    }

    fn bytes(&mut self, offset: u64, _least: usize) -> io::Result<&[u8]> {
        let skip = offset.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        Ok(skip.and_then(|skip| self.held.get(skip..)).unwrap_or_default())
    }
}

/// Opens a regular file. Other files may be endless, or block.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

/// Opens a regular file in another user's directory, possibly as root: following a symbolic link could open any file.
#[cfg(unix)]
pub(crate) fn open_unlinked(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    // A FIFO must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "a link, which is not followed"),
        error => error.into(),
    })?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// The same where a file cannot be opened in this way: the link could be made after it was looked for.
#[cfg(not(unix))]
pub(crate) fn open_unlinked(path: &Path) -> io::Result<File> {
    if path.symlink_metadata()?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a link, which is not followed"));
    }
    open(path)
}

/// Reads a whole file, up to `most + 1` bytes, so that the caller can refuse one that is too long.
pub(crate) fn read_bounded(path: &Path, most: usize) -> Result<Vec<u8>, ReadError> {
    open(path).and_then(|file| read(file, most)).map_err(|error| ReadError::io(path, error))
}

/// The same for a file opened with [`open_unlinked`].
pub(crate) fn read_unlinked(path: &Path, most: usize) -> Result<Vec<u8>, ReadError> {
    open_unlinked(path).and_then(|file| read(file, most)).map_err(|error| ReadError::io(path, error))
}

fn read(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
