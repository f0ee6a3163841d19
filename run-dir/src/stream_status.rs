//! Statistics of streaming sinks, reported in acknowledgements and by recorders.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracepoint_sinks::StreamWatch;

/// The file with a list of them that a recorder keeps next to the rings of a process, for `status` and for recovery.
pub const STREAMS: &str = "streams.json";

/// The statistics of a streaming sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamStatus {
    /// The address of the peer.
    pub to: String,
    /// The peer that it is connected to, by the name that the peer gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The reason why it sends nothing, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Number of connections established.
    pub connections: u64,
    /// Number of sent packets.
    pub packets: u64,
    /// Number of sent bytes.
    pub bytes: u64,
    /// Number of bytes sent in the last second.
    pub bytes_per_second: u64,
    /// Number of bytes of packets that wait to be sent or acknowledged.
    pub waiting: u64,
    /// The age of the oldest of them in ms: the lag of the peer. `None` if the process has another clock than the recorder.
    pub lag_ms: Option<u64>,
    /// The offset of the collector's clock from this host's, in ns, positive if it is ahead; `None` while unknown. Viewers use it to align
    /// the times of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ns: Option<i64>,
    /// Events lost during streaming, by reason. They are included in the `sink` of [`Counters::lost`](crate::Counters::lost).
    pub lost: BTreeMap<String, u64>,
    /// Number of events that the peer has not acknowledged and that are not lost yet.
    #[serde(default)]
    pub unacknowledged: u64,
    /// Number of events that the peer has acknowledged, by stream: class, instance, events.
    pub acknowledged: Vec<(u32, u64, u64)>,
}

impl StreamStatus {
    /// Returns the statistics of this sender.
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
