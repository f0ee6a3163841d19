//! The error of a live view.

use std::io;
use std::time::Duration;
use thiserror::Error;
use tracepoint_wire::DecodeError;
use tracepoint_wire::live::AttachStatus;

/// A live session cannot be read, or can no longer be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The URL is not one of a relay or a session.
    #[error("`{url}`: {reason}; expected `net://HOST[:PORT]` or `net://HOST[:PORT]/host/HOSTNAME/SESSION`")]
    Url {
        /// The URL.
        url: String,
        /// A description of the fault.
        reason: String,
    },
    /// The relay cannot be reached.
    #[error(
        "cannot connect to {address}: {source}; is a collector or `lttng-relayd` running there, and reachable at that port?"
    )]
    Connect {
        /// Its host and port.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection failed, or the relay has closed it without ending the session.
    #[error("the connection to the relay failed: {0}")]
    Connection(#[from] io::Error),
    /// The relay has not answered for this long.
    #[error("the relay has not answered for {} seconds", .0.as_secs())]
    Silent(Duration),
    /// The reply is malformed: the program at this address is not a relay, or is broken.
    #[error("the relay's answer does not follow the live protocol: {0}")]
    Malformed(#[from] DecodeError),
    /// The relay speaks another version.
    #[error("the relay speaks version {major}.{minor} of the live protocol; this is version 2")]
    Version {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// The session does not exist.
    #[error("there is no session `{name}` of host `{host}` at this relay; it has: {}", list(.sessions))]
    NoSession {
        /// The requested host.
        host: String,
        /// The requested session.
        name: String,
        /// The existing sessions, as `HOSTNAME/SESSION`.
        sessions: Vec<String>,
    },
    /// The session cannot be attached.
    #[error("session `{name}` cannot be attached: {}", reason(*.status))]
    Attach {
        /// The session.
        name: String,
        /// The relay's reason.
        status: AttachStatus,
    },
    /// The relay and this viewer do not share a key.
    #[error("the relay cannot be viewed: {0}")]
    Key(&'static str),
    /// The relay has failed, or its replies contradict each other.
    #[error("the relay has failed: {0}")]
    Relay(&'static str),
    /// No metadata of the session can be read.
    #[error(
        "no metadata of the session can be read after {} seconds, so that nothing of it can be shown; restart the sender, or \
         view what the relay has stored",
        .0.as_secs()
    )]
    Metadata(Duration),
    /// The relay announced or sent more than a viewer keeps.
    #[error("the relay sends too much: {what}, {size}; at most {most} are accepted")]
    TooMuch {
        /// The kind of thing that exceeds the limit.
        what: &'static str,
        /// Its announced amount.
        size: u64,
        /// The maximum amount.
        most: u64,
    },
    /// [`LiveOptions::stop`](super::LiveOptions::stop) was set.
    #[error("stopped")]
    Stopped,
}

fn list(sessions: &[String]) -> String {
    if sessions.is_empty() { "none".to_owned() } else { sessions.join(", ") }
}

const fn reason(status: AttachStatus) -> &'static str {
    match status {
        AttachStatus::Busy => "another viewer is attached, and this relay serves one at a time",
        AttachStatus::Unknown => "it has ended",
        AttachStatus::NotLive => "it is not live; create it with `lttng create --live`",
        AttachStatus::Seek => "the relay cannot begin at this place",
        _ => "the relay refuses",
    }
}
