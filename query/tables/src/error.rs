//! Why a trace has no tables, or cannot be read on.

use std::path::PathBuf;

use arrow_schema::ArrowError;
use tracepoint_reader::ReadError;

use crate::accounts::GivenTwice;

/// Why the tables of a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A trace is there twice.
    #[error(transparent)]
    GivenTwice(#[from] GivenTwice),
    /// Rows do not have the columns that they should.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A description was written by another version of the program.
    #[error("the description of a scan cannot be read: {0}; use the same version of the program everywhere")]
    Description(#[from] serde_json::Error),
    /// Files of the trace were removed since the query was planned.
    #[error("{}: the stream {} is not there any more: it was removed while the query ran; repeat the query", trace.display(), stream.display())]
    Removed {
        /// The trace.
        trace: PathBuf,
        /// The first file of the stream.
        stream: PathBuf,
    },
}
