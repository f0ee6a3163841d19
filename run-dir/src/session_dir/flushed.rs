//! The file in which a process publishes to a remote consumer which packets are closed: 16 bytes, a time in ns of the trace's clock, twice.
//!
//! All packets with a record that were opened before that time are closed. The consumer reads the file before the rings. Writer and reader
//! access the file in the same direction; a reader concurrent with a writer therefore sees two different times, and keeps its previous
//! value.

use crate::private_dir::PrivateDir;
use fileguard::ReopenableFd;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Its name in the directory of a process.
const FLUSHED: &str = "flushed";
const SIZE: usize = 16;

/// The file as written by its process.
#[derive(Debug)]
pub struct FlushedFile {
    file: ReopenableFd<File>,
    last: u64,
}

impl FlushedFile {
    /// Makes the file.
    pub(super) fn make(dir: &PrivateDir) -> io::Result<Self> {
        let file = dir.create_file(FLUSHED, SIZE as u64)?;
        file.write_all_at(&[0; SIZE], 0)?;
        let file = ReopenableFd::keeping(file, &dir.path().join(FLUSHED), OFlags::RDWR | OFlags::NOFOLLOW)?;
        Ok(Self { file, last: 0 })
    }

    /// Publishes a time, if it is new.
    pub fn write(&mut self, time: u64) -> io::Result<()> {
        if time == self.last {
            return Ok(());
        }
        self.last = time;
        let mut bytes = [0; SIZE];
        bytes[..SIZE / 2].copy_from_slice(&time.to_le_bytes());
        bytes[SIZE / 2..].copy_from_slice(&time.to_le_bytes());
        self.file.get()?.write_all_at(&bytes, 0)
    }
}

/// Returns the time that the process has published; `None` if there is no file, or the time is being written.
pub(super) fn read(dir: &PrivateDir) -> Option<u64> {
    let bytes = dir.read_file(FLUSHED, SIZE as u64).ok()?;
    let (first, second) = bytes.split_first_chunk::<{ SIZE / 2 }>()?;
    (first == second).then(|| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_was_written_and_never_in_part() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let dir = PrivateDir::at(&place.path().join("process"))?;
        assert_eq!(read(&dir), None, "there is no file");
        let mut file = FlushedFile::make(&dir)?;
        assert_eq!(read(&dir), Some(0));
        for time in [1, 0x1ff, 0x200, u64::MAX] {
            file.write(time)?;
            assert_eq!(read(&dir), Some(time));
        }
        file.file.get()?.write_all_at(&[1], 3)?;
        assert_eq!(read(&dir), None, "half of it is written");
        Ok(())
    }
}
