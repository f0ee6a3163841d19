//! The settings of a stream over a network: the table `stream` of a sink in `session.toml`.

use super::SpecError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_sinks::{DEFAULT_SYNC_INTERVAL, Destination, DestinationError, flush_age};

/// The minimum and the maximum interval between two synchronisation points, in ms.
const SYNC_INTERVALS: std::ops::RangeInclusive<u64> = 10..=60_000;

/// The valid range of the maximum datagram size, in bytes.
const MTUS: std::ops::RangeInclusive<u32> = 576..=65_507;

/// The settings of a stream over a network.
///
/// ```
/// use tracepoint_session_spec::{SinkSpec, StreamSpec};
///
/// let collected = SinkSpec::stream(StreamSpec::to("collector.lan"));
/// let relayed = SinkSpec::stream(StreamSpec::relay("relay.lan:5342"));
/// let published = SinkSpec::stream(StreamSpec::to("nats://broker.lan"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StreamSpec {
    /// The peer: `HOST`, `HOST:PORT` or `HOST:PORT:DATA_PORT`; or a NATS broker, `nats://HOST[:PORT]`, with the cargo feature `nats`.
    pub to: String,
    /// True if only the protocol of `lttng-relayd` is spoken; otherwise the protocol is negotiated with the peer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relay: bool,
    /// True if packets are sent to a collector in datagrams instead of a data connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub udp: bool,
    /// Largest datagram in bytes, from 576 to 65507; the default is 1400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Interval between two synchronisation points in ms, from 10 to 60000; the default is 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_interval_ms: Option<u64>,
    /// Maximum number of bytes of packets that wait to be sent, in each process; the default is 16 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_buffer: Option<u64>,
    /// Cap on the bytes per second that all processes of the session send together; by default only the cap of the run directory applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bandwidth: Option<u64>,
    /// File with the key that the sender and the collector share; without a key, the collector must not require one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Time in ms during which connecting to the peer is retried before recording starts; the default is one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// True if recording starts at once, and the peer is connected when that becomes possible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

impl StreamSpec {
    /// Streams to a collector or to `lttng-relayd`, at `HOST`, `HOST:PORT` or `HOST:PORT:DATA_PORT`.
    pub fn to(to: impl Into<String>) -> Self {
        Self { to: to.into(), ..Self::default() }
    }

    /// Streams in the protocol of `lttng-relayd`.
    pub fn relay(to: impl Into<String>) -> Self {
        Self { relay: true, ..Self::to(to) }
    }

    /// The peer.
    ///
    /// # Errors
    ///
    /// If its address is invalid.
    pub fn destination(&self) -> Result<Destination, SpecError> {
        let invalid = |error| format!("`{}` is no address of a relay or collector: {error}", self.to);
        self.to.parse().map_err(|error: DestinationError| SpecError::invalid(invalid(error)))
    }

    /// Returns whether the peer is a NATS broker.
    #[doc(hidden)]
    pub fn is_broker(&self) -> bool {
        self.to.starts_with("nats://") || self.to.starts_with("tls://")
    }

    /// Returns the age at which open packets are closed, so that viewers see events soon after a synchronisation point: `flush_ms` of a
    /// session whose packets are streamed by another process.
    pub fn flush_age(&self) -> Duration {
        flush_age(self.sync_interval_ms.map_or(DEFAULT_SYNC_INTERVAL, Duration::from_millis))
    }

    /// Checks that a packet of this size takes at most 10 s at the cap.
    pub(super) fn check_bandwidth(&self, packet_size: usize) -> Result<(), SpecError> {
        let least = (packet_size as u64).div_ceil(10).max(1);
        match self.max_bandwidth {
            Some(rate) if rate < least => Err(SpecError::invalid(format!(
                "a packet of {packet_size} bytes would take more than 10 s at {rate} bytes per second; give a `max_bandwidth` of at least \
                 {least}, or smaller rings"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks the URL of the broker, unless this program cannot stream, and that no setting is used that only a collector or relay supports.
    fn check_broker(&self) -> Result<(), SpecError> {
        #[cfg(feature = "stream")]
        self.to
            .parse::<tracepoint_wire::nats::Broker>()
            .map_err(|error| SpecError::invalid(format!("the broker: {error}")))?;
        if self.relay || self.udp || self.mtu.is_some() || self.key_file.is_some() {
            return Err(SpecError::invalid(
                "a NATS broker takes no datagrams, knows no shared key, and is no relay: leave out `relay`, `udp`, `mtu` and `key_file`",
            ));
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.is_broker() {
            self.check_broker()?;
        } else {
            self.destination()?;
        }
        match self.mtu {
            Some(_) if !self.udp => return Err(SpecError::invalid("`mtu` is for streams over UDP (`udp = true`)")),
            Some(mtu) if !MTUS.contains(&mtu) => {
                return Err(SpecError::invalid(format!(
                    "the largest datagram must be from 576 to 65507 bytes, not {mtu}"
                )));
            }
            _ if self.relay && self.udp => {
                return Err(SpecError::invalid(
                    "lttng-relayd takes no data over UDP; stream over TCP, or to `tracectl collect`",
                ));
            }
            _ => {}
        }
        match self.sync_interval_ms {
            Some(pause) if !SYNC_INTERVALS.contains(&pause) => Err(SpecError::invalid(format!(
                "the synchronisation interval must be from 10 ms to 60 s, not {pause} ms"
            ))),
            _ => Ok(()),
        }
    }
}
