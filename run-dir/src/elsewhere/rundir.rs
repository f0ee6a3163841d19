//! The counterpart on systems other than Linux, which have no run directory.

use crate::private_dir::{DirError, PrivateDir, not_here};
use std::path::Path;

/// A run directory, which does not exist here.
#[derive(Debug)]
pub struct RunDir(PrivateDir);

/// The run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunDirError(#[from] DirError);

#[doc(hidden)]
impl RunDirError {
    /// Returns `false`: the system is the reason.
    pub const fn is_for_rights(&self) -> bool {
        false
    }

    /// The underlying error.
    pub(crate) const fn reason(&self) -> &DirError {
        &self.0
    }
}

impl RunDir {
    /// Refuses: this system has none.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn find() -> Result<Self, RunDirError> {
        Self::at(Path::new("a run directory"))
    }

    /// Refuses: this system has none.
    ///
    /// # Errors
    ///
    /// Always.
    #[doc(hidden)]
    pub fn of_traced_process() -> Result<Self, RunDirError> {
        Self::find()
    }

    /// Refuses: this system has none.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn at(path: &Path) -> Result<Self, RunDirError> {
        Err(not_here(path).into())
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
