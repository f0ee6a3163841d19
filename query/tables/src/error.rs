//! Errors of opening and reading the tables of a trace.

use std::path::PathBuf;

use arrow_schema::ArrowError;
use tracepoint_reader::ReadError;

use crate::accounts::GivenTwice;

/// An error of the tables of a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The same trace is given twice.
    #[error(transparent)]
    GivenTwice(#[from] GivenTwice),
    /// Rows do not have the expected columns.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The description is from another version of the program.
    #[error("the description of a scan cannot be read: {0}; use the same version of the program everywhere")]
    Description(#[from] serde_json::Error),
    /// Files of the trace have been removed since the query was planned: the trace, and the first file of the stream.
    #[error("{}: the stream {} is not there any more: it was removed while the query ran; repeat the query", .0.display(), .1.display())]
    Removed(PathBuf, PathBuf),
}
