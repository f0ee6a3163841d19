//! The directories of a session, as far as this process has files there.

use std::path::PathBuf;

/// The directories of a session with files. A session whose rings are in memory has none.
#[derive(Clone, Debug)]
pub(crate) struct SessionDirs {
    /// The run directory; `None` if the program has chosen another place for the rings.
    pub(crate) run_dir: Option<PathBuf>,
    /// The directory of the session.
    pub(crate) session: PathBuf,
    /// The name of this process's entries in it.
    pub(crate) process: String,
}
