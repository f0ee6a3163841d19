//! How a verb ends, and the exit code that says so.

use crate::output;
use anstream::eprintln;
use anstyle::{AnsiColor, Style};
use std::io;
use std::process::ExitCode;
use thiserror::Error;
use tracepoint_control::ControlError;
use tracepoint_reader::convert::ConvertError;
use tracepoint_reader::udp::DirectoryError;
use tracepoint_reader::{ReadError, RecoverError};
use tracepoint_sinks::SinkError;

/// Told at the end of every `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  the trace is damaged, its books do not balance, or not all of it could be recovered or converted; a process does not
     answer, or cannot do what a session asks for
  2  the command line is wrong
  3  there is no trace that could be read, or the output could not be written; there is no such process or session, or nothing
     matches a rule";

/// A verb did what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There was nothing to complain about.
    Well,
    /// It found the trace wanting, and has said so.
    Wanting,
    /// Not all that was sent came, or that is not known; it has said so.
    Lossy,
}

/// A verb could not do what it was asked to.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// There is nothing to read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file is no dt file.
    #[error(transparent)]
    Dt(#[from] datatrace::ReadError),
    /// There is nothing to recover, or no place for it.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// There is nothing to convert, or no place for it.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// A session or a process is not there, or not as it should be.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// What was asked for does not make sense just now.
    #[error("{0}")]
    Senseless(String),
    /// It cannot be served.
    #[error(transparent)]
    Serve(#[from] SinkError),
    /// What is received cannot be written down.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// There is no server that can be read from.
    #[error("{0}")]
    NoServer(String),
    /// The system does not let us know of signals.
    #[error("cannot wait for signals: {0}")]
    Signal(io::Error),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

const ERROR: Style = AnsiColor::Red.on_default().bold();

/// The exit code, after the error message if there is one.
pub(crate) fn exit_code(outcome: Result<Outcome, Failure>) -> ExitCode {
    match outcome {
        Ok(Outcome::Well) => ExitCode::SUCCESS,
        Ok(Outcome::Wanting) => ExitCode::from(1),
        Ok(Outcome::Lossy) => ExitCode::from(4),
        // Whoever read the output has seen enough, as `head` does.
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            say_error(&failure.to_string());
            ExitCode::from(if matches!(failure, Failure::NoServer(_)) { 5 } else { 3 })
        }
    }
}

/// Writes one message to the standard error.
pub(crate) fn say_error(message: &str) {
    eprintln!("{ERROR}error{ERROR:#}: {}", output::plain(message));
}
