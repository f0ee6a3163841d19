//! The actions of triggers.

use super::TriggerPartError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Maximum total length of a program and its arguments, in bytes.
const MAX_COMMAND: usize = 64 << 10;

/// An action of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TriggerAction {
    /// Writes the contents of the session's rings to a new directory in this one, an absolute path: one trace for each process.
    Snapshot(PathBuf),
    /// Starts the session.
    Start,
    /// Stops the session.
    Stop,
    /// Makes the traces of the session continue in new chunks.
    Rotate,
    /// Sends a message to the subscribers of the notification socket.
    Notify,
    /// Runs a program: its absolute path, and its arguments. No shell is used.
    Run(Vec<String>),
}

impl TriggerAction {
    /// Its name on the command line: `snapshot`, `start`, `stop`, `rotate`, `notify` or `run`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "snapshot",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Rotate => "rotate",
            Self::Notify => "notify",
            Self::Run(_) => "run",
        }
    }

    /// Returns whether it changes the session, which only a controller can do.
    pub(super) const fn controls_session(&self) -> bool {
        matches!(self, Self::Start | Self::Stop | Self::Rotate)
    }

    /// Returns whether it makes a process open files or run programs that it names.
    #[doc(hidden)]
    pub const fn opens(&self) -> bool {
        matches!(self, Self::Snapshot(_) | Self::Run(_))
    }

    /// Checks its argument; the error describes the expected form.
    pub(super) fn check(&self) -> Result<(), TriggerPartError> {
        let wrong = match self {
            Self::Snapshot(path) if !path.is_absolute() => {
                format!("the directory of its snapshots must be absolute, not `{}`", path.display())
            }
            Self::Run(command) => match command.first() {
                None => "`run` takes a program".to_owned(),
                Some(program) if !Path::new(program).is_absolute() => {
                    format!("the path of its program must be absolute, not `{program}`")
                }
                _ if command.iter().any(|part| part.contains('\0')) => {
                    "its program and arguments must not contain a NUL".to_owned()
                }
                _ if command.iter().map(|part| part.len() + 1).sum::<usize>() > MAX_COMMAND => {
                    format!("its program and arguments must have at most {MAX_COMMAND} bytes")
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(TriggerPartError::argument(wrong))
    }
}

impl fmt::Display for TriggerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Snapshot(output) => write!(f, " into {}", output.display()),
            Self::Run(command) => command.iter().try_for_each(|part| write!(f, " {part}")),
            _ => Ok(()),
        }
    }
}
