//! What a call of the writing side answers when it cannot do what it was asked to.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A trace object could not be made, or could not take what it was given.
///
/// A call that fails has changed nothing: an entry was taken whole or not at all, and what is in the file stays there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or a number is 0, or absurd. Nothing was allocated or written.
    #[error("{what} is {value}; it must be from {least} to {most}")]
    Limit {
        /// What it is the size or number of.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// The least that is accepted.
        least: u64,
        /// The most that is accepted.
        most: u64,
    },
    /// The buffer of a framed file is not made of whole words, so that its frames could be torn in a word.
    #[error("logsize is {logsize}; in a framed file it must be a multiple of 4")]
    Words {
        /// What was asked for, in bytes.
        logsize: u32,
    },
    /// The call needs framed slots: a byte stream moves on only when a slot is full.
    #[error("{call} needs a framed file (version 2); this one is a byte stream")]
    FramedOnly {
        /// The call or the option.
        call: &'static str,
    },
    /// The call needs a file that was made at its full size: in one that grows, postambles move.
    #[error("{call} needs a file that was made at its full size (`Layout::full_size`); this one grows")]
    FullSizeOnly {
        /// The call.
        call: &'static str,
    },
    /// A name from which no file name can be made.
    #[error("{name:?} cannot name a trace file: {reason}")]
    Name {
        /// The name, or the name of the instance.
        name: String,
        /// What is wrong with it, and the mend.
        reason: &'static str,
    },
    /// An open trace object of this process has that name and instance already.
    #[error("a trace object named {name:?} is open already; close it first, or give this one an instance name")]
    Duplicate {
        /// Name and, behind a `_`, instance.
        name: String,
    },
    /// The file belongs to a trace object that is open, in this process or in another one.
    #[error("{}: another trace object is writing this file; close it, or choose another name or directory", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is a file of this name already, which is not to be replaced. Nobody is writing it.
    #[error("{}: this file exists already; choose another name, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
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
    #[error("{}: the trace object is closed; trace, and add postambles, before it is", path.display())]
    Closed {
        /// Its file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}{}", path.display(), mend(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }
}

/// What whoever reads the message can do about it; empty where nothing general can be said.
fn mend(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room, or name another directory",
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes (`ulimit -f`), or choose a smaller filesize",
        _ => "",
    }
}

/// Some of the trace objects could not be closed in order; all of them are closed.
#[derive(Debug, Error)]
#[error("{}", .failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct CloseAllError {
    /// What went wrong, in the order of the list.
    pub failures: Vec<Error>,
}
