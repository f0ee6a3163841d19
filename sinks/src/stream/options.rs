//! Options of a sender.

use super::throttle::Bandwidth;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;
use tracepoint_reader::net::relay::CONTROL_PORT;
use tracepoint_reader::net::stream::SharedKey;

/// The default limit of the bytes that wait to be sent or acknowledged.
pub const DEFAULT_RESEND_BUFFER: usize = 16 << 20;
/// The default pause between two synchronisation points.
pub const DEFAULT_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The default size of the largest datagram, in bytes.
pub const DEFAULT_MTU: u32 = 1400;

/// The longest name of a host that DNS knows, in bytes.
const LONGEST_HOST: usize = 253;

/// The age at which open packets are closed for a stream with this pause between two synchronisation points: an eighth of it, so that what is
/// announced is little older than the pause; at most 500 ms.
pub fn flush_age(sync_interval: Duration) -> Duration {
    (sync_interval / 8).clamp(Duration::from_millis(10), Duration::from_millis(500))
}

/// The host and the ports of a relay or a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The name or address of the host.
    pub host: String,
    /// The TCP port for control; 5342 by default.
    pub control_port: u16,
    /// The port for data, over TCP or UDP. A port that is given is used also where a collector tells another one, as behind a forwarded port. `None`: that
    /// which the collector tells, or the one behind that for control.
    pub data_port: Option<u16>,
}

impl Destination {
    /// The host, and the port for control; the port for data is not given.
    pub fn new(host: impl Into<String>, control_port: u16) -> Self {
        Self { host: host.into(), control_port, data_port: None }
    }

    /// The port for data of a peer that tells no port, or `told`.
    pub(super) fn port_for_data(&self, told: Option<u16>) -> u16 {
        self.data_port.or(told).unwrap_or_else(|| self.control_port.wrapping_add(1))
    }

    /// The addresses of a port.
    pub(super) fn addresses(&self, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), port).to_socket_addrs()?.collect())
    }
}

impl FromStr for Destination {
    type Err = String;

    /// Parses `HOST`, `HOST:PORT`, `HOST:PORT:DATA_PORT`; an IPv6 address is in brackets.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "expected HOST, HOST:PORT or HOST:PORT:DATA_PORT, for example `collector.lan:5342` or `[::1]`".to_owned()
        };
        let (host, ports) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(split) => split.ok_or_else(wrong)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
        let (control_port, data_port) = match ports.strip_prefix(':').map(|ports| ports.split_once(':').ok_or(ports)) {
            None if ports.is_empty() => (CONTROL_PORT, None),
            None => return Err(wrong()),
            Some(Err(control)) => (port(control)?, None),
            Some(Ok((control, data))) => (port(control)?, Some(port(data)?)),
        };
        match host.len() {
            0 => Err(wrong()),
            1..=LONGEST_HOST => Ok(Self { host: host.to_owned(), control_port, data_port }),
            length => Err(format!("the name of a host has at most {LONGEST_HOST} bytes, and this one has {length}")),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, control_port, data_port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{control_port}")?;
        } else {
            write!(f, "{host}:{control_port}")?;
        }
        data_port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Options of a sender.
///
/// ```
/// use std::time::Duration;
/// use tracepoint_sinks::stream::StreamOptions;
///
/// let options = StreamOptions::to("collector.lan".parse()?).sync_interval(Duration::from_millis(200)).retry(Duration::from_secs(30));
/// # Ok::<(), String>(())
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
    /// In place of the destination.
    #[cfg(feature = "nats")]
    pub(super) broker: Option<tracepoint_reader::net::nats::Broker>,
}

impl StreamOptions {
    /// The default options, to this peer.
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
    /// # Ok::<(), String>(())
    /// ```
    #[cfg(feature = "nats")]
    pub fn publish(broker: tracepoint_reader::net::nats::Broker) -> Self {
        Self { broker: Some(broker), ..Self::to(Destination::new(String::new(), 0)) }
    }

    /// The peer, for messages.
    pub(super) fn peer(&self) -> String {
        #[cfg(feature = "nats")]
        if let Some(broker) = &self.broker {
            return broker.to_string();
        }
        self.destination.to_string()
    }

    /// Speaks the protocol of `lttng-relayd` alone, also to a collector.
    #[must_use]
    pub const fn relay_only(mut self) -> Self {
        self.relay_only = true;
        self
    }

    /// The name of the process: name, id and start. The default is the name, the id and a part of the trace's uuid.
    #[must_use]
    pub fn process(mut self, name: impl Into<String>) -> Self {
        self.process = Some(name.into());
        self
    }

    /// Sends packets in datagrams of at most `mtu` bytes, from 576 to 65507, in place of a data connection. Only a collector takes them.
    #[must_use]
    pub fn udp(mut self, mtu: u32) -> Self {
        (self.udp, self.mtu) = (true, mtu.clamp(576, 65_507));
        self
    }

    /// Limits the bytes of packets that wait to be sent; the default is 16 MiB. While there are more, packets stay in the rings.
    #[must_use]
    pub const fn resend_buffer(mut self, bytes: usize) -> Self {
        self.resend_buffer = bytes;
        self
    }

    /// Sets the pause between two synchronisation points, from 10 ms to 60 s; the default is 1 s. Viewers see the events of idle threads
    /// after that time at the latest.
    #[must_use]
    pub fn sync_interval(mut self, pause: Duration) -> Self {
        self.sync_interval = pause.clamp(Duration::from_millis(10), Duration::from_secs(60));
        self
    }

    /// Limits the bytes of packets that are sent per second, with the headers of datagrams and records but without those of IP; by default there
    /// is no limit. All processes of the session share it. A packet that cannot be sent within 250 ms and a pause between two synchronisation points
    /// is dropped, and counted as lost by the bandwidth. Control messages and synchronisation points are exempt. A cap at which a packet of the
    /// session takes more than 10 s is refused when the session starts.
    #[must_use]
    pub const fn max_bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.bandwidth.max = Some(bytes_per_second);
        self
    }

    /// Streams only to a collector that proves to have this key, and proves it to the collector.
    #[must_use]
    pub fn key(mut self, key: SharedKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Tries for this time to reach the peer before the recording starts; by default once.
    #[must_use]
    pub const fn retry(mut self, time: Duration) -> Self {
        self.retry = Some(time);
        self
    }

    /// Starts to record at once, and connects when that is possible.
    #[must_use]
    pub const fn wait(mut self) -> Self {
        self.retry = None;
        self
    }

    /// Limits the time that is taken to send the rest when the session ends; the default is 10 s. What was not sent then is counted as lost.
    #[must_use]
    pub const fn flush(mut self, time: Duration) -> Self {
        self.flush = time;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_parsed_and_shown() {
        for (text, host, control, data, shown) in [
            ("vm", "vm", 5342, None, "vm:5342"),
            ("vm:7", "vm", 7, None, "vm:7"),
            ("vm:7:9", "vm", 7, Some(9), "vm:7:9"),
            ("[::1]", "::1", 5342, None, "[::1]:5342"),
            ("[::1]:7:8", "::1", 7, Some(8), "[::1]:7:8"),
            ("10.0.0.1:5342", "10.0.0.1", 5342, None, "10.0.0.1:5342"),
        ] {
            let parsed: Destination = text.parse().expect(text);
            assert_eq!((parsed.host.as_str(), parsed.control_port, parsed.data_port), (host, control, data), "{text}");
            assert_eq!(parsed.to_string(), shown);
            let ports = [parsed.port_for_data(None), parsed.port_for_data(Some(77))];
            assert_eq!(ports, [data.unwrap_or(control + 1), data.unwrap_or(77)], "{text}");
        }
        for wrong in ["", ":5342", "vm:", "vm:0", "vm:x", "vm:1:2:3", "[::1", "[::1]x", "::1"] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong}");
        }
        assert!("x".repeat(253).parse::<Destination>().is_ok());
        assert_eq!(
            "x".repeat(300).parse::<Destination>(),
            Err("the name of a host has at most 253 bytes, and this one has 300".to_owned())
        );
    }
}
