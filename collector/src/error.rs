//! Errors of a collector.

use fileguard::shortage_mend;
use std::io;

/// A collector cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}{advice}")]
pub struct CollectError {
    action: String,
    source: io::Error,
    advice: &'static str,
}

impl CollectError {
    pub(crate) fn new(action: impl Into<String>, source: io::Error) -> Self {
        let advice = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "; end the other program (perhaps lttng-relayd), or choose other ports, 0 for free ones"
            }
            io::ErrorKind::AddrNotAvailable => "; give an address of this machine, or 0.0.0.0 for all",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; choose a directory that this user may write to, and ports above 1023"
            }
            io::ErrorKind::StorageFull => "; make room, or choose another directory",
            _ => shortage_mend(&source).unwrap_or_default(),
        };
        Self { action: action.into(), source, advice }
    }
}
