//! The outcome of a verb, and its exit code.

use crate::argument_error::ArgumentError;
use crate::{message, output};
use std::io;
use std::num::NonZero;
use std::process::ExitCode;
use thiserror::Error;
use tracepoint_reader::convert::ConvertError;
use tracepoint_reader::live::LiveError;
use tracepoint_reader::{ReadError, RecoverError};
use tracepoint_session_spec::TraceFilterError;
#[cfg(target_os = "linux")]
use {
    tracepoint_collector::CollectError,
    tracepoint_controller::{KernelError, core_dump::CoreHandlerError, trigger::TriggerError},
    tracepoint_reader::udp::DirectoryError,
    tracepoint_session_io::ControlError,
    tracepoint_sinks::SinkError,
};

pub(crate) type VerbResult = Result<Outcome, Failure>;

/// The outcome of a verb, ordered by exit code; where several apply, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Everything was done.
    Success,
    /// Something is damaged or missing; the messages say what.
    Incomplete,
    /// The command line is invalid; `clap` ends the program.
    Usage,
    /// The verb could not do its work: most kinds of [`Failure`].
    Failed,
    /// Events were lost, or may have been.
    Lossy,
    /// [`Failure::NoServer`].
    NoServer,
    /// `record`: processes that take part were not recorded.
    NotRecorded,
    /// `record`: a recorded process was killed.
    Killed,
    /// `record`: the command ended with this status, which is not 0.
    Command(NonZero<u8>),
}

impl Outcome {
    /// All outcomes, with their descriptions in `--help` and in the book.
    const ALL: [(Self, &str); 8] = [
        (Self::Success, "success"),
        (
            Self::Incomplete,
            "incomplete: data is damaged or its account does not balance, not everything could be recovered or converted, \
             or a process does not answer or cannot do what the session asks for",
        ),
        (Self::Usage, "the command line is invalid"),
        (
            Self::Failed,
            "failure: the trace cannot be read, the output cannot be written, there is no such process or session, or \
             nothing matches a rule, or nothing of a command could be recorded",
        ),
        (
            Self::Lossy,
            "events were lost: `read`, where losses at the end may also be unknown, and `record` with `--fail-on-loss`",
        ),
        (Self::NoServer, "`read`, `view`: there is no server to read from"),
        (Self::NotRecorded, "`record`: processes that take part were not recorded; they are named"),
        (
            Self::Killed,
            "`record`: a process was killed, or ended without closing its recording; with a command, see the status of that",
        ),
    ];

    /// All outcomes except [`Outcome::Command`].
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(outcome, _)| outcome)
    }

    /// Its description, as in `--help`.
    pub(crate) fn text(self) -> &'static str {
        Self::ALL.into_iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, text)| text)
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Command(status) => status.get(),
            other => Self::ALL.iter().position(|(outcome, _)| *outcome == other).unwrap_or_default() as u8,
        }
    }

    /// The outcome with this exit code.
    pub(crate) fn of_code(code: u8) -> Self {
        let known = Self::ALL.get(usize::from(code)).map(|(outcome, _)| *outcome);
        known.or_else(|| NonZero::new(code).map(Self::Command)).unwrap_or(Self::Success)
    }
}

impl From<ArgumentError> for Failure {
    fn from(error: ArgumentError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome.code())
    }
}

#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Dt(#[from] datatrace::ReadError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error(transparent)]
    Convert(#[from] ConvertError),
    #[error(transparent)]
    Selection(#[from] TraceFilterError),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Control(#[from] ControlError),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Trigger(#[from] TriggerError),
    /// The command cannot be carried out; the text says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// The command line is invalid in a way that `clap` does not find.
    #[error("{0}")]
    Usage(String),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    CoreHandler(#[from] CoreHandlerError),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Serve(#[from] SinkError),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Collect(#[from] CollectError),
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Live(#[from] LiveError),
    #[cfg(target_os = "linux")]
    #[error("{0}")]
    NoServer(String),
    #[cfg(target_os = "linux")]
    #[error("cannot wait for signals: {0}")]
    Signal(io::Error),
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

impl Failure {
    const fn outcome(&self) -> Outcome {
        match self {
            #[cfg(target_os = "linux")]
            Self::NoServer(_) => Outcome::NoServer,
            Self::Live(LiveError::Connect { .. }) => Outcome::NoServer,
            Self::Usage(_)
            | Self::Live(LiveError::Url { .. })
            | Self::Selection(TraceFilterError::Pattern { .. } | TraceFilterError::Level { .. }) => Outcome::Usage,
            _ => Outcome::Failed,
        }
    }
}

/// The exit code; prints the error, if there is one.
pub(crate) fn exit_code(result: VerbResult) -> ExitCode {
    outcome(result).into()
}

/// The outcome of a verb; prints the errors, including a failure to write the standard output.
pub(crate) fn outcome(result: VerbResult) -> Outcome {
    let written = output::finish();
    let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match (result, written) {
        (Ok(outcome), Ok(())) => outcome,
        // The reader closed the output early, as `head` does. The verb may have failed because of that.
        (Ok(outcome), Err(error)) if is_closed(&error) => outcome,
        (Err(Failure::Write(_)), Err(error)) if is_closed(&error) => Outcome::Success,
        (Err(Failure::Write(error)), _) if is_closed(&error) => Outcome::Success,
        (Ok(outcome), Err(error)) => outcome.max(report(&Failure::Write(error))),
        (Err(failure), _) => report(&failure),
    }
}

/// Prints the error; returns the outcome.
fn report(failure: &Failure) -> Outcome {
    message::error(&failure.to_string());
    failure.outcome()
}
