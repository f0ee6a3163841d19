//! Errors of the writing side.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A trace object could not be created or written.
///
/// A failed call changes nothing: an entry is accepted completely or not at all, and the contents of the file remain.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or a number is out of range. Nothing was allocated or written.
    #[error("{what} is {value}; it must be from {least} to {most}")]
    Limit {
        /// The name of the value.
        what: &'static str,
        /// The requested value.
        value: u64,
        /// The lowest valid value.
        least: u64,
        /// The highest valid value.
        most: u64,
    },
    /// The size of the buffer of a framed file is not a multiple of 4, so that a frame could be torn within a word.
    #[error("logsize is {0}; in a framed file it must be a multiple of 4")]
    Unaligned(u32),
    /// The call needs framed slots: a byte stream moves on only when a slot is full.
    #[error("{0} needs a framed file (version 2); this one is a byte stream")]
    FramedOnly(&'static str),
    /// The call needs a file that was created at its full size: in one that grows, postambles move.
    #[error("{0} needs a file that was made at its full size (`Layout::full_size`); this one grows")]
    FullSizeOnly(&'static str),
    /// A name from which no file name can be made.
    #[error("{name:?} cannot name a trace file: {reason}")]
    Name {
        /// The name, or the name of the instance.
        name: String,
        /// The fault, and its remedy.
        reason: &'static str,
    },
    /// An open trace object of this process has that name and instance already.
    #[error("a trace object named {0:?} is open already; close it first, or give this one an instance name")]
    Duplicate(String),
    /// The file belongs to a trace object that is open, in this process or in another one.
    #[error("{}: another trace object is writing this file; close it, or choose another name or directory", .0.display())]
    InUse(PathBuf),
    /// A file of this name exists, and must not be replaced. No process is writing it.
    #[error("{}: this file exists already; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// The entry does not fit into an empty buffer.
    #[error(
        "an entry of {length} bytes does not fit into a buffer that holds {most}; give the object a larger logsize"
    )]
    EntryTooLarge {
        /// Bytes of the entry.
        length: usize,
        /// Bytes that a buffer holds.
        most: usize,
    },
    /// The trace object has been closed.
    #[error("{}: the trace object is closed; trace, and add postambles, before it is", .0.display())]
    Closed(PathBuf),
    /// A system call failed.
    #[error("{}: cannot {action}: {source}{}", path.display(), mend(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }
}

/// The remedy for an error, if one is known.
fn mend(error: &io::Error) -> &'static str {
    if let Some(mend) = fileguard::shortage_mend(error) {
        return mend;
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room, or name another directory",
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes (`ulimit -f`), or choose a smaller filesize",
        _ => "",
    }
}

/// Some trace objects could not be written in full. All of them are closed.
#[derive(Debug, Error)]
#[error("{}", joined(failures))]
#[non_exhaustive]
pub struct CloseAllError {
    /// The errors, in the order of creation.
    pub failures: Vec<Error>,
}

/// The messages of all failures in one.
fn joined(failures: &[Error]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
