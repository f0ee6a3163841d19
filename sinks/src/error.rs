//! What a sink could not do.

use std::io;
use std::sync::Arc;

/// A sink could not do what it was asked for.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {action}: {source}{}", mend(source))]
pub struct SinkError {
    action: String,
    source: Arc<io::Error>,
}

impl SinkError {
    /// An error in the course of `action`, a phrase such as "write /tmp/t/metadata".
    pub fn new(action: impl Into<String>, source: io::Error) -> Self {
        Self { action: action.into(), source: Arc::new(source) }
    }

    /// What was tried.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// What the operating system, or the sink itself, answered.
    pub fn io_error(&self) -> &io::Error {
        &self.source
    }
}

/// What the reader of the message can do about it; empty where nothing general can be said.
pub(crate) fn mend(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room, or record somewhere else",
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes (`ulimit -f`), or record less",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a place that this user may write to"
        }
        io::ErrorKind::BrokenPipe => "; whoever read this output has gone",
        _ => "",
    }
}
