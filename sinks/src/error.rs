//! Errors of sinks.

use std::io;
use std::sync::Arc;

/// An operation of a sink failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {action}: {source}{}", mend(source))]
pub struct SinkError {
    action: String,
    source: Arc<io::Error>,
}

impl SinkError {
    /// Creates the error that prevented `action`, a phrase such as "write /tmp/t/metadata".
    pub fn new(action: impl Into<String>, source: io::Error) -> Self {
        Self { action: action.into(), source: Arc::new(source) }
    }

    /// Returns the operation that failed.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Returns the error of the operating system, or of the sink itself.
    pub fn io_error(&self) -> &io::Error {
        &self.source
    }
}

/// Returns the advice that ends a message about this error; empty if there is none.
pub(crate) fn mend(error: &io::Error) -> &'static str {
    if let Some(mend) = fileguard::shortage_mend(error) {
        return mend;
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room, or record somewhere else",
        io::ErrorKind::FileTooLarge => "; raise the limit on file sizes (`ulimit -f`), or record less",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a place that this user may write to"
        }
        io::ErrorKind::BrokenPipe => "; the program that read this output has ended",
        _ => "",
    }
}
