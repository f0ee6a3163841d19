//! The file of a text sink.

use crate::system::AppendedFile;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A file created by a [`TextSink`](crate::TextSink). On Linux it is reopened if the program closes its descriptor.
#[derive(Debug)]
pub struct TextFile(AppendedFile);

impl TextFile {
    /// Creates the file, which must not exist.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().append(true).create_new(true).open(path)?;
        Ok(Self(AppendedFile::new(file, path)?))
    }
}

impl Write for TextFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        fileguard::retried(|| (&*self.0.get()?).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        // A file has no buffer in this process.
        Ok(())
    }
}
