//! Why a session does not start, or how it ended badly.

use super::status::Summary;
use crate::session_dir::RingDirError;
use crate::spec::{RuleError, SpecError};
use std::io;
use tracepoint_core::SwitchError;
use tracepoint_core::channel::{ConfigError, TooManyEvents};
use tracepoint_core::clock::ClockInUse;
use tracepoint_sinks::SinkError;

/// A session cannot start, or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The name will not do for a file.
    #[error("{name:?} is no session name: {reason}; use 1 to 255 bytes without `/`, not starting with a dot")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A rule cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The description cannot be used.
    #[error("the session cannot be: {0}")]
    Spec(#[source] SpecError),
    /// There are no events at all.
    #[error(
        "this program has no events: declare some with `define_trace!` (a bare hook without a field block exports none); a \
         crate that is only a dependency, and never named in the code, is not linked (`use it as _;`); and the feature `off` \
         of tracepoint removes all"
    )]
    NoEvents,
    /// A rule matches none of them.
    #[error("no event matches `{rule}`{}", hint(nearest))]
    NoMatch {
        /// The rule.
        rule: String,
        /// The names that come nearest; may be empty.
        nearest: Vec<String>,
    },
    /// The rules together leave nothing.
    #[error("the rules leave no event: {reason}")]
    NothingLeft {
        /// Which rule took the last ones away.
        reason: String,
    },
    /// A sink cannot be made from its description.
    #[error("the session does not start: {reason}")]
    Sink {
        /// Why not.
        reason: String,
    },
    /// There is no place for its rings.
    #[error("there is no place for the session's rings: {0}")]
    Rings(#[from] RingDirError),
    /// Another clock is in use.
    #[error(
        "the session does not start: {0}; stop the sessions that use it first, or leave `.clock(…)` out to share it"
    )]
    Clock(#[from] ClockInUse),
    /// It does not have this channel.
    #[error("the session has no channel `{name}`; it has {known}")]
    NoChannel {
        /// The name.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// A channel was called so before, and removed: its streams' files are called so.
    #[error(
        "a channel `{name}` was removed from this recording; choose another name, or stop the session and start it anew"
    )]
    ChannelNameUsed {
        /// The name.
        name: String,
    },
    /// It has no such sink, or had, and it was removed.
    #[error("the session {name} has no such sink (any more)")]
    NoSuchSink {
        /// The session's name.
        name: String,
    },
    /// It has no such rule.
    #[error("the session has no rule {rule}; it has {known}")]
    NoSuchRule {
        /// The rule.
        rule: String,
        /// Those that it has.
        known: String,
    },
    /// A sink could not take part in a change.
    #[error("the session cannot be changed: {0}")]
    Change(#[source] SinkError),
    /// It has stopped.
    #[error("the session {name} has stopped")]
    Stopped {
        /// The session's name.
        name: String,
    },
    /// A channel cannot be opened.
    #[error("the channel cannot be opened: {0}")]
    Channel(#[from] ConfigError),
    /// The rules match more events than a channel has ids for.
    #[error("{0}; choose fewer with `.events(…)`")]
    TooManyEvents(#[from] TooManyEvents),
    /// A sink cannot begin.
    #[error("the session does not start: {0}")]
    Start(#[source] SinkError),
    /// The events' sites cannot be switched on.
    #[error("the session does not start: {0}")]
    Switch(#[from] SwitchError),
    /// The background thread cannot be started.
    #[error("the session's thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    /// The recording ended, and sinks had failed.
    #[error("{}", failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Sinks {
        /// Which, and how.
        failures: Vec<SinkFailure>,
        /// What became of the events all the same.
        summary: Box<Summary>,
    },
    /// None of its sinks can be rotated.
    #[error("the session {name} has no sink that can go on in another directory: only a `CtfSink` can")]
    CannotRotate {
        /// The session's name.
        name: String,
    },
    /// A sink cannot go on in another chunk, and goes on in the present one.
    #[error("{0}")]
    Rotate(#[source] SinkError),
    /// A probe tried to stop it, or to have it rotate.
    #[error("the session {name} cannot be waited for inside a probe; one that shall stop ends by itself now")]
    InsideProbe {
        /// The session's name.
        name: String,
    },
    /// The session belongs to the process that this one was forked from.
    #[error("the session {name} is one of process {process}, from which this one was forked; control it there")]
    Forked {
        /// The session's name.
        name: String,
        /// The process that started it.
        process: u32,
    },
}

/// A sink that failed.
#[derive(Debug, thiserror::Error)]
#[error("{sink}: {error}{}", if *refused > 0 { format!(" ({refused} packets were lost)") } else { String::new() })]
#[non_exhaustive]
pub struct SinkFailure {
    /// What it is called.
    pub sink: String,
    /// Its first error.
    #[source]
    pub error: SinkError,
    /// How many packets it did not take. Their events are in its account, under `sink`.
    pub refused: u64,
}

impl From<SpecError> for SessionError {
    fn from(error: SpecError) -> Self {
        match error {
            SpecError::Rule(error) => Self::Rule(error),
            error => Self::Spec(error),
        }
    }
}

fn hint(nearest: &[String]) -> String {
    match nearest {
        [] => "; names are written `provider:name`".to_owned(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}
