//! A ring file that can be closed while it is not accessed. A reader of the rings of a thousand processes cannot keep that many files open.

use super::bytes::Bytes;
use fileguard::{CheckedFd, FileExt, ReopenableFd};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::path::Path;

/// A FIFO in the place of a ring must not block.
const FLAGS: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// A ring file, open for reading and writing, or closed until it is accessed.
#[derive(Debug)]
pub(crate) struct RingFile(ReopenableFd<File>);

impl RingFile {
    pub(crate) fn new(path: &Path, file: CheckedFd<File>) -> io::Result<Self> {
        ReopenableFd::keeping(file, path, FLAGS).map(Self)
    }

    /// Closes it; the next access opens it again.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Writes at `offset`.
    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.get()?.write_all_at(bytes, offset)
    }
}

impl Bytes for RingFile {
    fn length(&self) -> io::Result<u64> {
        self.0.get()?.length()
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.get()?.fill(buffer, offset)
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
        let file = CheckedFd::of(File::options().read(true).write(true).open(&path)?)?;
        let file = Arc::new(RingFile::new(&path, file)?);
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
