//! The failure of an action.

use crate::error::ControlError;
use rustix::io::Errno;
use std::io;
use std::path::Path;
use tracepoint_reader::RecoverError;
use tracepoint_run_dir::private_dir::DirError;

/// The reason why an action failed.
#[derive(Debug)]
pub struct ActionFailure {
    /// The reason.
    pub reason: String,
    /// The error number that describes it best.
    pub errno: i32,
}

impl ActionFailure {
    /// Creates a failure.
    pub fn new(reason: &impl ToString, errno: i32) -> Self {
        Self { reason: reason.to_string(), errno }
    }

    pub(super) fn of_path(action: &str, path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |error| {
            let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            Self::new(&format!("cannot {action} {}: {error}", path.display()), errno)
        }
    }
}

impl From<RecoverError> for ActionFailure {
    fn from(error: RecoverError) -> Self {
        let errno = match &error {
            RecoverError::Write { source, .. } => source.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
            RecoverError::NoRings { .. } => Errno::NOENT.raw_os_error(),
            _ => Errno::IO.raw_os_error(),
        };
        Self::new(&error, errno)
    }
}

impl From<&ControlError> for ActionFailure {
    fn from(error: &ControlError) -> Self {
        let errno = match error {
            ControlError::NoSession { .. } => Errno::NOENT.raw_os_error(),
            ControlError::SessionOfOtherUser { .. } => Errno::ACCESS.raw_os_error(),
            ControlError::RunDirFull { .. } => Errno::NOSPC.raw_os_error(),
            ControlError::Dir(DirError::Io { source, .. }) => source.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
            _ => Errno::IO.raw_os_error(),
        };
        Self::new(error, errno)
    }
}
