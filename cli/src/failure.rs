//! How a verb ends, and the exit code for it.

use crate::message;
use std::io;
use std::process::ExitCode;
use thiserror::Error;
use tracepoint_control::ControlError;
use tracepoint_reader::convert::ConvertError;
use tracepoint_reader::udp::DirectoryError;
use tracepoint_reader::{ReadError, RecoverError};
use tracepoint_sinks::SinkError;

/// Printed at the end of `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  incomplete: the trace is damaged or its account does not balance, not everything could be recovered or converted, or
     a process does not answer or cannot do what the session asks for
  2  the command line is invalid
  3  failure: the trace cannot be read, the output cannot be written, there is no such process or session, or nothing
     matches a rule";

/// The result of a verb.
pub(crate) type VerbResult = Result<Outcome, Failure>;

/// A verb has run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was done.
    Success,
    /// Something is damaged or missing; the messages say what.
    Incomplete,
    /// `read`: events were lost on the way, or may have been; the messages say so.
    Lossy,
}

/// A verb could not do its work.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file is not a dt file.
    #[error(transparent)]
    Dt(#[from] datatrace::ReadError),
    /// There is nothing to recover, or the output cannot be written.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// There is nothing to convert, or the output cannot be written.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// There is no such session or process, or it is damaged.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The command cannot be carried out; the text says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// The trace cannot be served.
    #[error(transparent)]
    Serve(#[from] SinkError),
    /// The received trace cannot be written.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// There is no server to read from.
    #[error("{0}")]
    NoServer(String),
    /// Signal handlers cannot be installed.
    #[error("cannot wait for signals: {0}")]
    Signal(io::Error),
    /// The standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

/// The exit code; prints the error, if there is one.
pub(crate) fn exit_code(result: VerbResult) -> ExitCode {
    match result {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(1),
        Ok(Outcome::Lossy) => ExitCode::from(4),
        // The reader of the output has closed it, as `head` does.
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            message::error(&failure.to_string());
            ExitCode::from(if matches!(failure, Failure::NoServer(_)) { 5 } else { 3 })
        }
    }
}
