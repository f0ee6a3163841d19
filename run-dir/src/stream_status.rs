//! What the sinks that stream have done so far, as acknowledgements and recorders tell it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracepoint_sinks::StreamWatch;

/// The file with a list of them that a recorder keeps beside the rings of a process, for `status` and for recovery.
pub const STREAMS: &str = "streams.json";

/// What a sink that streams has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamStatus {
    /// The address of the peer.
    pub to: String,
    /// The peer that it is connected to, as that names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Why it sends nothing, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// How often it has connected.
    pub connections: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were sent in the last second.
    pub bytes_per_second: u64,
    /// Bytes of packets that wait to be sent or to be acknowledged.
    pub waiting: u64,
    /// The age of the oldest of them in ms: how far the peer is behind. `None`: the process has another clock than the recorder.
    pub lag_ms: Option<u64>,
    /// How far the clock of the collector is ahead of this host's, in ns; `None` while it is not known. Viewers align the times of the trace by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ns: Option<i64>,
    /// Events that were lost on the way, by reason. They are among the `sink` of [`Counters::lost`](crate::Counters::lost).
    pub lost: BTreeMap<String, u64>,
    /// Events that the peer has not acknowledged, and that are not lost yet.
    #[serde(default)]
    pub unacknowledged: u64,
    /// Events that the peer has acknowledged, by stream: class, instance, events.
    pub acknowledged: Vec<(u32, u64, u64)>,
}

impl StreamStatus {
    /// What this sender has done.
    pub fn of(watch: &StreamWatch) -> Self {
        let stats = watch.stats();
        Self {
            to: watch.destination().to_owned(),
            peer: stats.peer,
            trouble: stats.trouble,
            connections: stats.connections,
            packets: stats.packets,
            bytes: stats.bytes,
            bytes_per_second: stats.rate,
            waiting: stats.waiting,
            lag_ms: stats.lag.map(|lag| u64::try_from(lag.as_millis()).unwrap_or(u64::MAX)),
            clock_ns: stats.clock,
            lost: stats.lost.into_iter().map(|(reason, events)| (reason.to_owned(), events)).collect(),
            unacknowledged: stats.unacknowledged,
            acknowledged: stats.acknowledged.into_iter().map(|((class, id), events)| (class, id, events)).collect(),
        }
    }
}
