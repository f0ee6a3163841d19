//! Where the rings of a session are, and how many of dead processes are kept.

use std::path::PathBuf;

/// Location of a session's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the run directory, under the session's name.
    #[default]
    RunDir,
    /// At this path.
    At(PathBuf),
}

/// Configuration of a session's directory.
#[derive(Clone, Debug)]
pub struct Options {
    /// The location.
    pub place: Place,
    /// True if it may be on a disk file system.
    pub allow_disk: bool,
    /// Limits on the kept directories of dead processes.
    pub keep_dead: KeepDead,
}

/// Limits on the kept directories of dead processes, newest first: their number, and the sum of their rings in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepDead {
    /// The number of directories.
    pub processes: usize,
    /// The sum of their rings, in bytes.
    pub bytes: u64,
}

impl KeepDead {
    /// No limits.
    pub const ALL: Self = Self { processes: usize::MAX, bytes: u64::MAX };
    /// Keeps no directory.
    pub const NONE: Self = Self { processes: 0, bytes: 0 };
}
