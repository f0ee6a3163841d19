//! Options of a sender.

use crate::bandwidth::Bandwidth;
use crate::destination::{DEFAULT_MTU, DEFAULT_SYNC_INTERVAL, Destination};
use std::time::Duration;
use tracepoint_wire::stream::SharedKey;

/// Default limit on bytes that wait to be sent or acknowledged.
pub const DEFAULT_RESEND_BUFFER: usize = 16 << 20;

/// Options of a sender.
///
/// ```
/// use std::time::Duration;
/// use tracepoint_sinks::stream::StreamOptions;
///
/// let options = StreamOptions::to("collector.lan".parse()?).sync_interval(Duration::from_millis(200)).retry(Duration::from_secs(30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamOptions {
    pub(super) destination: Destination,
    pub(super) relay_only: bool,
    pub(super) udp: bool,
    pub(super) mtu: u32,
    pub(super) process: Option<String>,
    pub(super) resend_buffer: usize,
    pub(super) sync_interval: Duration,
    pub(super) retry: Option<Duration>,
    pub(super) flush: Duration,
    pub(super) bandwidth: Bandwidth,
    pub(super) key: Option<SharedKey>,
    /// If set, replaces the destination.
    #[cfg(feature = "nats")]
    pub(super) broker: Option<tracepoint_wire::nats::Broker>,
}

impl StreamOptions {
    /// Returns the default options for this peer.
    pub fn to(destination: Destination) -> Self {
        Self {
            destination,
            relay_only: false,
            udp: false,
            mtu: DEFAULT_MTU,
            process: None,
            resend_buffer: DEFAULT_RESEND_BUFFER,
            sync_interval: DEFAULT_SYNC_INTERVAL,
            retry: Some(Duration::ZERO),
            flush: Duration::from_secs(10),
            bandwidth: Bandwidth::default(),
            key: None,
            #[cfg(feature = "nats")]
            broker: None,
        }
    }

    /// The default options, publishing to a NATS broker with `JetStream`: see `docs/nats.md`. Datagrams, shared keys and
    /// [`relay_only`](Self::relay_only) do not apply.
    ///
    /// ```
    /// use tracepoint_sinks::stream::StreamOptions;
    ///
    /// let options = StreamOptions::publish("nats://broker.lan:4222".parse()?);
    /// # Ok::<(), tracepoint_sinks::stream::BrokerUrlError>(())
    /// ```
    #[cfg(feature = "nats")]
    pub fn publish(broker: tracepoint_wire::nats::Broker) -> Self {
        Self { broker: Some(broker), ..Self::to(Destination::new(String::new(), 0)) }
    }

    /// Returns the peer's name for messages.
    pub(super) fn peer(&self) -> String {
        #[cfg(feature = "nats")]
        if let Some(broker) = &self.broker {
            return broker.to_string();
        }
        self.destination.to_string()
    }

    /// Uses only the protocol of `lttng-relayd`, even with a collector.
    #[must_use]
    pub const fn relay_only(mut self) -> Self {
        self.relay_only = true;
        self
    }

    /// Sets the process name, which should contain name, pid and start time. The default consists of the name, the pid and part of the trace's uuid.
    #[must_use]
    pub fn process(mut self, name: impl Into<String>) -> Self {
        self.process = Some(name.into());
        self
    }

    /// Sends packets in datagrams of at most `mtu` bytes, from 576 to 65507, instead of a data connection. Only collectors accept them.
    #[must_use]
    pub fn udp(mut self, mtu: u32) -> Self {
        (self.udp, self.mtu) = (true, mtu.clamp(576, 65_507));
        self
    }

    /// Limits the bytes of packets that wait to be sent; the default is 16 MiB. Beyond that, packets stay in the rings.
    #[must_use]
    pub const fn resend_buffer(mut self, bytes: usize) -> Self {
        self.resend_buffer = bytes;
        self
    }

    /// Sets the interval of synchronisation points, from 10 ms to 60 s; the default is 1 s. Viewers see the events of idle threads after that time
    /// at the latest.
    #[must_use]
    pub fn sync_interval(mut self, pause: Duration) -> Self {
        self.sync_interval = pause.clamp(Duration::from_millis(10), Duration::from_secs(60));
        self
    }

    /// Limits the bytes of packets sent per second, including headers of datagrams and records but not of IP; unlimited by default. All processes of
    /// the session share the limit. A packet that cannot be sent within 250 ms plus the interval of synchronisation points is dropped, and counted as
    /// lost by the bandwidth. Control messages and synchronisation points are exempt. A cap at which a packet of the session takes more than 10 s is
    /// rejected when the session starts.
    #[must_use]
    pub const fn max_bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.bandwidth.max = Some(bytes_per_second);
        self
    }

    /// Sets a key that the collector must prove to have, and that the sender proves to the collector.
    #[must_use]
    pub fn key(mut self, key: SharedKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets how long to try to reach the peer before the recording starts; by default, one attempt is made.
    #[must_use]
    pub const fn retry(mut self, time: Duration) -> Self {
        self.retry = Some(time);
        self
    }

    /// Starts recording at once, and connects when that is possible.
    #[must_use]
    pub const fn wait(mut self) -> Self {
        self.retry = None;
        self
    }

    /// Limits the time for sending the rest when the session ends; the default is 10 s. Unsent packets are then counted as lost.
    #[must_use]
    pub const fn flush(mut self, time: Duration) -> Self {
        self.flush = time;
        self
    }
}
