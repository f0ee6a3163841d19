//! The source of a reader's bytes: a file, read at offsets, or memory.

use fileguard::FileExt;
use std::fs::File;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub(crate) enum Source {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a regular file, and also returns its length. Other files may be endless, or block.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, u64)> {
        if !path.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((Self::File(file), length))
    }

    /// Fills `place` with the bytes at `offset`. At the end of the source there may be fewer. Returns their number.
    pub(crate) fn read_full(&self, offset: u64, place: &mut [u8]) -> io::Result<usize> {
        let mut there = 0;
        while there < place.len() {
            match self.read(offset + there as u64, &mut place[there..]) {
                Ok(0) => break,
                Ok(count) => there += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(there)
    }

    fn read(&self, offset: u64, place: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(place, offset),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = place.len().min(bytes.len() - start);
                place[..count].copy_from_slice(&bytes[start..start + count]);
                Ok(count)
            }
        }
    }
}
