//! Notices about a session that are not errors.

mod in_ack;

pub(crate) use in_ack::{deserialize, serialize};

use std::fmt;
use std::path::PathBuf;

/// A deviation of a session from what its description suggests, in a program's own `Session`, in the environment variables
/// that an `Agent` reads, or in the [acknowledgement](crate::Ack) of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Several declarations share a name and differ in level or fields: each is recorded as a separate event.
    Renamed {
        /// The shared name.
        name: String,
        /// The name that one of them is recorded under.
        recorded: String,
        /// Location of its declaration: file and line.
        declared: String,
    },
    /// The session has no rule that includes events: it records nothing until one is added.
    NoRule,
    /// A rule that excludes events matches no event.
    UselessExclusion(String),
    /// An event is not recorded: it lacks a field that the filter uses, or the field has another type.
    FilterDoesNotFit {
        /// The event.
        event: String,
        /// The mismatch.
        reason: String,
    },
    /// The run directory cannot be used. In a merge with other processes' traces, times may be microseconds off.
    NoSharedClock(String),
    /// The process has more rights than the owner of its run directory, who could read the rings there. Therefore the rings are in memory,
    /// and cannot be recovered if the process is killed.
    RingsInMemory(String),
    /// The session's cost exceeded its budget, and its most frequent event was disabled.
    OverBudget(String),
    /// The path of a sink contains a newline, so it is missing from the list of outputs: recovery after a kill will not find that part of the
    /// events.
    OutputNotListed(PathBuf),
    /// The recording that the environment variable `TRACEPOINT` requests deviates from it, or has not started.
    Environment(String),
    /// The process has left the root directory in which its agent started (`chroot`): controllers resolve the paths of outputs differently.
    ChangedRoot(u32),
    /// A sink writes nothing, because its file system has too little free space.
    NoSpace {
        /// The path that it writes to.
        path: PathBuf,
        /// Number of refused writes since there was enough space.
        refused: u64,
    },
    /// A sink has no connection to its peer: packets wait in memory, and then in the rings.
    NotConnected {
        /// The peer.
        peer: String,
        /// The error.
        reason: String,
    },
    /// A sink writes nothing, because the session's maximum size is reached.
    MaxSizeReached {
        /// The path that it wrote to.
        path: PathBuf,
        /// Number of refused writes.
        refused: u64,
        /// The maximum, in bytes.
        max_size: u64,
    },
    /// A sink could not begin its next chunk, and continues in the current one.
    RotationFailed(String),
    /// A sink removed older chunks, because it keeps a limited number of them.
    ChunksRemoved {
        /// The sink.
        sink: String,
        /// Number of removed chunks.
        chunks: u64,
        /// Number of events in them.
        events: u64,
        /// Number of bytes in them.
        bytes: u64,
    },
    /// A sink of an earlier recording of the session still has data to write.
    SinkBlocked,
    /// The counters are older than the acknowledgement, because a sink keeps the session's thread busy.
    CountersOutOfDate(String),
    /// New threads get no ring, so their events are lost.
    NoRing(String),
    /// The description of a channel has changed; the running recording continues with the original settings of the channel.
    ChannelSettingsPending {
        /// The session.
        session: String,
        /// The channel.
        channel: String,
        /// The settings that differ, by their keys in `session.toml`.
        settings: Vec<String>,
    },
    /// A remotely controlled session already has the name of this session, which a program has started in code; this session gets another
    /// name.
    NameTaken {
        /// The name that the program chose.
        session: String,
        /// The name under which it is listed and recorded.
        recorded: String,
    },
    /// Limits of the session have changed; the running recording continues with the original limits.
    LimitsPending {
        /// The session.
        session: String,
        /// The limits that differ, by their keys in `session.toml`.
        settings: Vec<String>,
    },
    /// Events are not recorded, because a channel of the running recording has no ids left for them.
    TooManyEvents {
        /// One of them.
        event: String,
        /// Number of other such events.
        others: usize,
        /// The number of ids.
        reason: String,
    },
    /// A notice of another process, as in its acknowledgement.
    Reported {
        /// The [kind](Notice::kind) of the notice; empty if the process did not write it.
        kind: String,
        /// The notice as text.
        text: String,
    },
}

impl Notice {
    /// The kind of the notice in acknowledgements and in `tracectl status --json`: the variant's name in snake case.
    pub fn kind(&self) -> &str {
        match self {
            Self::Renamed { .. } => "renamed",
            Self::NoRule => "no_rule",
            Self::UselessExclusion { .. } => "useless_exclusion",
            Self::FilterDoesNotFit { .. } => "filter_does_not_fit",
            Self::NoSharedClock { .. } => "no_shared_clock",
            Self::RingsInMemory { .. } => "rings_in_memory",
            Self::OverBudget { .. } => "over_budget",
            Self::OutputNotListed { .. } => "output_not_listed",
            Self::Environment { .. } => "environment",
            Self::ChangedRoot { .. } => "changed_root",
            Self::NoSpace { .. } => "no_space",
            Self::NotConnected { .. } => "not_connected",
            Self::MaxSizeReached { .. } => "max_size_reached",
            Self::RotationFailed { .. } => "rotation_failed",
            Self::ChunksRemoved { .. } => "chunks_removed",
            Self::SinkBlocked => "sink_blocked",
            Self::CountersOutOfDate { .. } => "counters_out_of_date",
            Self::NoRing { .. } => "no_ring",
            Self::ChannelSettingsPending { .. } => "channel_settings_pending",
            Self::NameTaken { .. } => "name_taken",
            Self::LimitsPending { .. } => "limits_pending",
            Self::TooManyEvents { .. } => "too_many_events",
            Self::Reported { kind, .. } => kind,
        }
    }
}

/// Settings that apply later.
struct PendingSettings<'a> {
    session: &'a str,
    settings: &'a [String],
}

impl fmt::Display for PendingSettings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, settings } = self;
        let settings: Vec<_> = settings.iter().map(|setting| format!("`{setting}`")).collect();
        let settings = settings.join(", ");
        write!(
            f,
            "{settings} changed, which applies to the next recording: `tracectl stop {session}`, then `tracectl start {session}`"
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renamed { name, recorded, declared } => {
                write!(f, "{name} of {declared} is recorded as {recorded}: another event of that name has other fields")
            }
            Self::OverBudget(reason) | Self::RotationFailed(reason) => f.write_str(reason),
            Self::NoRule => f.write_str("no rule includes events: nothing is recorded until one is added"),
            Self::UselessExclusion(rule) => write!(f, "the rule `{rule}` excludes nothing: no event matches it"),
            Self::FilterDoesNotFit { event, reason } => {
                write!(f, "{event} is left out, because the filter does not fit it: {reason}")
            }
            Self::OutputNotListed(path) => {
                let path = path.to_string_lossy();
                write!(f, "{path:?} is not listed for recovery, because it contains a newline: choose another path")
            }
            Self::NoSharedClock(reason) => {
                write!(
                    f,
                    "the clock cannot be shared with other processes, so their times may be microseconds apart: {reason}"
                )
            }
            Self::RingsInMemory(reason) => {
                write!(f, "the rings are in memory, and cannot be recovered if the process is killed: {reason}")
            }
            Self::Environment(reason) => write!(f, "TRACEPOINT: {reason}"),
            Self::NotConnected { peer, reason } => {
                write!(f, "there is no connection to {peer}: {reason}; packets wait in memory, and then in their rings")
            }
            Self::ChangedRoot(pid) => write!(
                f,
                "the process has changed its root directory (`chroot`): the paths of its outputs are below /proc/{pid}/root"
            ),
            Self::NoSpace { path, refused } => write!(
                f,
                "nothing is written to {}, {refused} times by now: less than a twentieth of its file system, or 2 GiB of a large one, is \
                 free; writing resumes when there is space",
                path.display()
            ),
            Self::MaxSizeReached { path, refused, max_size } => write!(
                f,
                "nothing is written to {} any more, {refused} times by now: it has reached the {max_size} bytes that the session allows \
                 (`max_size`); raise `max_size`, or keep only the newest events (`rotate_size` and `keep`, or a dt file)",
                path.display()
            ),
            Self::ChunksRemoved { sink, chunks, events, bytes } => {
                write!(f, "{sink}: {chunks} older chunks were removed, with {events} events in {bytes} bytes")
            }
            Self::SinkBlocked => {
                f.write_str("a slow or blocked sink of an earlier recording has not written everything yet")
            }
            Self::CountersOutOfDate(reason) => write!(f, "the counters are out of date: {reason}"),
            Self::NoRing(reason) => {
                write!(f, "new threads get no ring, and their events are lost (no_ring): {reason}")
            }
            Self::ChannelSettingsPending { session, channel, settings } => {
                write!(f, "channel `{channel}`: {}", PendingSettings { session, settings })
            }
            Self::NameTaken { session, recorded } => {
                write!(f, "there is a session {session} from outside: this one is called {recorded}")
            }
            Self::LimitsPending { session, settings } => write!(f, "limits: {}", PendingSettings { session, settings }),
            Self::TooManyEvents { event, others, reason } => {
                let events = if *others == 0 { "is".to_owned() } else { format!("and {others} other events are") };
                write!(
                    f,
                    "{event} {events} left out: {reason}; record fewer, or raise `max_events` and start the session again"
                )
            }
            Self::Reported { text, .. } => f.write_str(text),
        }
    }
}
