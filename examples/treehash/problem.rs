//! What can be wrong with a file.

use rustix::io::Errno;
use std::io;

/// Why a file was not hashed, or a directory not entered. The values are those in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Problem {
    /// Reading it is not allowed.
    Permission = 0,
    /// It was listed, and was gone when it was opened; or it is a link that leads nowhere.
    Vanished = 1,
    /// A link leads back to where it stands, or to itself.
    Loop = 2,
    /// Anything else.
    Other = 3,
}

impl Problem {
    /// All of them, by value.
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

    /// What the system's answer means.
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission,
            io::ErrorKind::NotFound => Self::Vanished,
            _ if Errno::from_io_error(error) == Some(Errno::LOOP) => Self::Loop,
            _ => Self::Other,
        }
    }
}
