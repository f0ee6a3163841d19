//! Problems with files.

use rustix::io::Errno;
use std::io;

/// The reason that a file was not hashed, or a directory not entered. The values are used in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Problem {
    /// Permission to read it is denied.
    Permission = 0,
    /// It was listed, but no longer existed when it was opened; or it is a dangling link.
    Vanished = 1,
    /// A link leads to a directory that contains it, or to itself.
    Loop = 2,
    /// Anything else.
    Other = 3,
}

impl Problem {
    /// All problems, by value.
    pub const ALL: [Self; 4] = [Self::Permission, Self::Vanished, Self::Loop, Self::Other];

    /// The name in the trace.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Vanished => "vanished",
            Self::Loop => "loop",
            Self::Other => "other",
        }
    }

    /// Classifies an error of the system.
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission,
            io::ErrorKind::NotFound => Self::Vanished,
            _ if Errno::from_io_error(error) == Some(Errno::LOOP) => Self::Loop,
            _ => Self::Other,
        }
    }
}
