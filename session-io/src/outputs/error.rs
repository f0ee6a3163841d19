//! Errors in creating sinks.

use crate::sink_features::SinkFeature;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// A sink cannot be made from its description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// This program was built without its kind.
    #[error("{}", .0.refusal())]
    NotBuilt(&'static SinkFeature),
    /// It is an object of a program.
    #[error("a sink of the kind `object` cannot be made from a description; pass it as an object")]
    Object,
    /// A file cannot be made or opened.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file system is too full.
    #[error("cannot record to {}: {source}; free some space, or record to another file system", path.display())]
    NoSpace {
        /// The output.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The sink itself cannot be created.
    #[error(transparent)]
    Sink(Box<dyn Error + Send + Sync>),
}

impl OutputError {
    pub(super) fn sink(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Sink(error.into())
    }
}
