//! The errors of using a directory.

use super::is_no_room;
use fileguard::shortage_mend;
use std::io;
use std::path::PathBuf;

/// A directory cannot be used or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirError {
    /// It belongs to another user.
    #[error("{} belongs to user {owner}, not to {user}", path.display())]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner's id.
        owner: u32,
        /// The id of this process's user.
        user: u32,
    },
    /// Other users may write to it.
    #[error("other users may write to {path}; remove that permission (`chmod go-w {path}`)", path = .0.display())]
    Writable(PathBuf),
    /// This process has more rights than the directory's owner, who would gain them by controlling it.
    #[error("the run directory {} is for user {owner}, who may not debug this process: {reason}; {mend}", path.display())]
    MoreRights {
        /// The directory, which may not exist.
        path: PathBuf,
        /// Its owner's id.
        owner: u32,
        /// The right that the owner does not have.
        reason: String,
        /// The remedy.
        mend: &'static str,
    },
    /// An operation failed. Symbolic links are not followed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation: `make`, `open`, …
        action: &'static str,
        /// The directory, or a file in it.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

#[doc(hidden)]
impl DirError {
    /// Returns the message and the remedy. `elsewhere` describes how to choose another place, which does not help against every error.
    pub fn with_mend(&self, elsewhere: &str) -> String {
        match self {
            // The message contains the remedy.
            Self::MoreRights { .. } => self.to_string(),
            Self::Io { source, .. } => match shortage_mend(source) {
                Some(mend) => format!("{self}{mend}"),
                None if is_no_room(source) => format!("{self}; make room there, or {elsewhere}"),
                None => format!("{self}; {elsewhere}"),
            },
            Self::Owner { .. } | Self::Writable { .. } => format!("{self}; {elsewhere}"),
        }
    }

    /// Returns whether the program has closed a descriptor meanwhile.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Io { source, .. } if fileguard::is_closed(source))
    }

    /// Returns whether the directory or file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
