//! The counterpart on systems other than Linux, where nothing shows that another process writes to a file.

use std::fs::File;
use std::io;
use std::path::Path;

/// An open file.
#[derive(Debug)]
pub(super) struct KeptFile(File);

impl KeptFile {
    pub(super) const fn get(&self) -> io::Result<&File> {
        Ok(&self.0)
    }
}

pub(super) const fn keep(file: File, _: &Path) -> io::Result<KeptFile> {
    Ok(KeptFile(file))
}

/// Opens the file for appending, with its length.
pub(super) fn open_alone(path: &Path) -> io::Result<Option<(KeptFile, u64)>> {
    let file = File::options().append(true).create(true).open(path)?;
    let written = file.metadata()?.len();
    Ok(Some((KeptFile(file), written)))
}

/// Returns the largest number: a write beyond a limit fails.
pub(super) const fn file_size_limit() -> u64 {
    u64::MAX
}
