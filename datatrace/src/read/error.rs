//! The error of reading a dt file.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A dt file, or a slot of one, cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no file with this name, or it is not a regular file.
    #[error("{}: {reason}; name a dt file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// The type of the object found instead.
        reason: &'static str,
    },
    /// A system call failed.
    #[error("{}: {source}{}", path.display(), mend(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a dt file, or its header is damaged.
    #[error("{}: byte {offset}: {reason}; name a dt file whose header is whole", path.display())]
    Header {
        /// The file, or `dt file` for bytes in memory.
        path: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
    },
    /// Slots are torn or missing. The others can be read.
    #[error("{}: slot {slot}, byte {offset}: {reason}", path.display())]
    Damaged {
        /// The file, or `dt file` for bytes in memory.
        path: PathBuf,
        /// The slot, or the first of several.
        slot: u32,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
    },
    /// The contents of a tagged postamble do not match its tag.
    #[error("{}: postamble at byte {offset}: {reason}", path.display())]
    Postamble {
        /// The file, or `dt file` for bytes in memory.
        path: PathBuf,
        /// Offset of the postamble, in bytes.
        offset: u64,
        /// The fault.
        reason: String,
    },
}

impl ReadError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn open(path: &Path, source: io::Error) -> Self {
        let reason = match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "there is no such file",
            io::ErrorKind::InvalidInput => "this is not a regular file",
            _ => return Self::io(path, source),
        };
        Self::NotAFile { path: path.to_owned(), reason }
    }
}

/// The remedy for an error.
fn mend(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; name a file that this user may read",
        _ => "",
    }
}
