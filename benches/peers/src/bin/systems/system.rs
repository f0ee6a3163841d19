//! The systems, and their ways to record a program.

#[cfg_attr(not(feature = "lttng"), path = "system/lttng_absent.rs")]
mod lttng;
mod tracectl;

use crate::processes::Pid;
use anyhow::Result;
use clap::ValueEnum;
use std::path::Path;

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum System {
    /// No tracer: what the loads take by themselves
    None,
    /// This library: a named session of `tracectl create`, which a thread of the program drains
    Session,
    /// This library: `tracectl record`, which drains from outside
    Record,
    /// LTTng-UST: a session of lttng-sessiond, drained by lttng-consumerd
    Lttng,
    /// dial9: a recorder within the program
    Dial9,
}

impl System {
    /// The name on the command line and in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Session => "session",
            Self::Record => "record",
            Self::Lttng => "lttng",
            Self::Dial9 => "dial9",
        }
    }

    /// Fails if it is not available here; the error is the reason.
    pub(crate) fn check(self) -> Result<()> {
        if self == Self::Lttng { lttng::check() } else { Ok(()) }
    }

    /// Starts to record a program into a trace in `output`. The program's run directory is `run_directory`.
    pub(crate) fn record(
        self,
        program: Pid,
        tracectl: &Path,
        run_directory: &Path,
        output: &Path,
    ) -> Result<Box<dyn Recording>> {
        Ok(match self {
            Self::None | Self::Dial9 => Box::new(Nothing),
            Self::Session => Box::new(tracectl::Session::start(tracectl, run_directory, output)?),
            Self::Record => Box::new(tracectl::Recorder::start(program, tracectl, run_directory, output)?),
            Self::Lttng => Box::new(lttng::Session::start(output)?),
        })
    }
}

/// A running recording. Dropping it without a [`stop`](Recording::stop), after an error, also ends it.
pub(crate) trait Recording {
    /// The processes that drain, write and control.
    fn consumers(&self) -> Result<Vec<Pid>>;

    /// Ends it. Returns the number of lost events, if the recording counts them.
    fn stop(&mut self) -> Result<Option<u64>>;
}

/// The program records itself, or is not recorded.
struct Nothing;

impl Recording for Nothing {
    fn consumers(&self) -> Result<Vec<Pid>> {
        Ok(Vec::new())
    }

    fn stop(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }
}
