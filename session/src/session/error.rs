//! Errors of starting, changing and ending a session.

use super::status::{SinkFailure, Summary};
use fileguard::shortage_mend;
use std::io;
use tracepoint_core::SiteSwitchError;
use tracepoint_core::channel::{ConfigError, TooManyEvents};
use tracepoint_core::clock::ClockInUse;
use tracepoint_reader::RecoverError;
use tracepoint_run_dir::session_dir::RingDirError;
use tracepoint_session_spec::{NameError, RuleError, SpecError};
use tracepoint_sinks::SinkError;

/// A session cannot start, cannot be changed, or failed while it ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The name is not a valid file name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The description is invalid.
    #[error("the session's description is invalid: {0}")]
    Spec(#[source] SpecError),
    /// The program has no events.
    #[error(
        "this program has no events: declare some with `define_trace!` (a hook without a field block declares no event); a \
         crate that is only a dependency, and never named in the code, is not linked (`use it as _;`); and the feature `off` \
         of tracepoint removes all events"
    )]
    NoEvents,
    /// A rule matches no event.
    #[error("no event matches `{rule}`{}", hint(nearest))]
    NoMatch {
        /// The rule.
        rule: String,
        /// The nearest names; may be empty.
        nearest: Vec<String>,
    },
    /// The rules together match no event.
    #[error("the rules leave no event: {0}")]
    NothingLeft(String),
    /// A statistic cannot be computed.
    #[error("{0}")]
    Statistic(String),
    /// A sink cannot be made from its description.
    #[error("the session does not start: {0}")]
    Sink(String),
    /// The directory for the session's rings cannot be used.
    #[error("cannot make the directory for the session's rings: {0}")]
    Rings(#[from] RingDirError),
    /// Another clock is in use by open channels.
    #[error(
        "the session does not start: {0}; stop the sessions that use it first, or leave `.clock(…)` out to share it"
    )]
    Clock(#[from] ClockInUse),
    /// The sinks of several ended recordings of the session are blocked. Only sessions of a controller are started again.
    #[error("the sinks of {0} earlier recordings are blocked; recording starts when one of them has finished")]
    SinksBlocked(usize),
    /// The channels of a session of a controller cannot change while another process drains them.
    #[error(
        "a session that is drained by another process keeps the channels with which it began; changed channels apply when it records again"
    )]
    KeepsChannels,
    /// The session does not have this channel.
    #[error("the session has no channel `{name}`; it has {known}")]
    NoChannel {
        /// The name.
        name: String,
        /// The session's channels.
        known: String,
    },
    /// A removed channel had this name, and stream files are named after it.
    #[error(
        "a channel `{0}` was removed from this recording; choose another name, or stop the session and start it anew"
    )]
    ChannelNameUsed(String),
    /// The session has no such sink, or it was removed.
    #[error("the session {0} has no such sink, or it was removed")]
    NoSuchSink(String),
    /// The session has no such rule.
    #[error("the session has no rule {rule}; it has {known}")]
    NoSuchRule {
        /// The rule.
        rule: String,
        /// The session's rules.
        known: String,
    },
    /// A sink failed during a change.
    #[error("the session cannot be changed: {0}")]
    Change(#[source] SinkError),
    /// The session has stopped.
    #[error("the session {0} has stopped")]
    Stopped(String),
    /// A channel cannot be opened.
    #[error("the channel cannot be opened: {0}")]
    Channel(#[from] ConfigError),
    /// The process has too many open channels to add those of the session. Nothing was created.
    #[error(
        "this process has {open} channels open, the session needs {needed} more, and {most} are allowed together; stop or destroy a session \
         that records in it"
    )]
    NoChannelLeft {
        /// Number of channels of all sessions that this process records.
        open: usize,
        /// Number of channels that the session needs.
        needed: usize,
        /// Maximum number of channels in a process.
        most: usize,
    },
    /// The rules match more events than a channel has ids.
    #[error("{0}; choose fewer with `.events(…)`")]
    TooManyEvents(#[from] TooManyEvents),
    /// A rule that was added to a running session matches events for which a channel has no ids left.
    #[error("the rule `{rule}` is not added: {reason}")]
    NoIds {
        /// The rule.
        rule: String,
        /// The events, and advice.
        reason: String,
    },
    /// A sink cannot start.
    #[error("the session does not start: {0}")]
    Start(#[source] SinkError),
    /// The events' sites cannot be enabled.
    #[error("the session does not start: {0}")]
    Switch(#[from] SiteSwitchError),
    /// The background thread cannot be started.
    #[error("cannot start the session's thread: {}{}", .0, shortage_mend(.0).unwrap_or_default())]
    Thread(#[source] io::Error),
    /// The recording ended, and at least one sink failed.
    #[error("{}", failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Sinks {
        /// The failed sinks.
        failures: Vec<SinkFailure>,
        /// The summary, which is valid nevertheless.
        summary: Box<Summary>,
    },
    /// No sink can rotate.
    #[error("the session {0} has no sink that can rotate: only a `CtfSink` can")]
    CannotRotate(String),
    /// A sink cannot start a new chunk, and continues in the current one.
    #[error("{0}")]
    Rotate(#[source] SinkError),
    /// A snapshot cannot be taken: nothing was written, and the session continues.
    #[error("cannot take a snapshot of the session {name}: {source}")]
    Snapshot {
        /// The session's name.
        name: String,
        /// The reason.
        source: RecoverError,
    },
    /// This process records no session of that name.
    #[error("this process does not record a session {name}; it records {known}")]
    NotRecorded {
        /// The name.
        name: String,
        /// The names of the sessions that it records.
        known: String,
    },
    /// A probe tried to stop, change, rotate, flush or copy the session.
    #[error(
        "nothing can be done with the session {0} inside a probe; do it on another thread. A session that `stop` consumed ends \
         by itself"
    )]
    InsideProbe(String),
    /// The session belongs to the parent of this forked process.
    #[error("the session {name} belongs to process {process}, from which this one was forked; control it there")]
    Forked {
        /// The session's name.
        name: String,
        /// The process that started it.
        process: u32,
    },
}

impl From<(Vec<SinkFailure>, Summary)> for SessionError {
    fn from((failures, summary): (Vec<SinkFailure>, Summary)) -> Self {
        Self::Sinks { failures, summary: Box::new(summary) }
    }
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
