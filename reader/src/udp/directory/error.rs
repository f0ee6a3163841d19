//! The error of writing a directory.

use crate::error::ReadError;
use crate::recover::RecoverError;
use thiserror::Error;

/// Received events could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The directory is not empty, or cannot be written.
    #[error(transparent)]
    Output(#[from] RecoverError),
    /// The server's metadata or account cannot be read.
    #[error("the server sent invalid data: {0}")]
    Metadata(#[from] ReadError),
}
