//! The counterpart on systems other than Linux. Space is not reserved there. Windows does not replace a file that a process writes; on macOS nothing
//! prevents that.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use tempfile::Builder;

/// An open file.
#[derive(Debug)]
pub(super) struct KeptFile(File);

impl KeptFile {
    pub(super) const fn get(&self) -> io::Result<&File> {
        Ok(&self.0)
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the counterpart may fail")]
    pub(super) const fn rename(&mut self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

pub(super) const fn keep(file: File, _path: &Path) -> io::Result<KeptFile> {
    Ok(KeptFile(file))
}

pub(super) const fn lock(_file: &File) -> io::Result<()> {
    Ok(())
}

pub(super) const fn with_rights<'a, 'b, 'c>(builder: &'c mut Builder<'a, 'b>) -> &'c mut Builder<'a, 'b> {
    builder
}

/// Returns whether both are of the same file.
#[cfg(unix)]
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns whether both may be of the same file: the standard library knows no index of a file on Windows.
#[cfg(not(unix))]
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.created().ok() == other.created().ok()
}

/// Returns `false`: only the length can be set.
pub(super) const fn reserve(_file: &File, _length: u64) -> io::Result<bool> {
    Ok(false)
}
