//! The destination of a sender, and defaults of its options: the part that a session's description needs even if the sender is not compiled in.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

/// The default port of control connections.
const CONTROL_PORT: u16 = 5342;
#[cfg(feature = "stream")]
const _: () = assert!(CONTROL_PORT == tracepoint_wire::relay::CONTROL_PORT);

/// Default interval of synchronisation points.
pub const DEFAULT_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Default maximum size of a datagram, in bytes.
pub const DEFAULT_MTU: u32 = 1400;

/// Maximum length of a host name in DNS, in bytes.
const LONGEST_HOST: usize = 253;

/// Returns the age at which open packets are closed for a stream with this interval of synchronisation points: an eighth of it, so that announced
/// events are little older than the interval; from 10 to 500 ms.
pub fn flush_age(sync_interval: Duration) -> Duration {
    (sync_interval / 8).clamp(Duration::from_millis(10), Duration::from_millis(500))
}

/// The host and the ports of a relay or a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host's name or address.
    pub host: String,
    /// The TCP port for control; 5342 by default.
    pub control_port: u16,
    /// The port for data, over TCP or UDP. If set, it is used even if the collector announces another one, for example with a forwarded port. `None`
    /// means the announced port, or the control port plus 1.
    pub data_port: Option<u16>,
}

impl Destination {
    /// Creates a destination with a host and a control port, without a data port.
    pub fn new(host: impl Into<String>, control_port: u16) -> Self {
        Self { host: host.into(), control_port, data_port: None }
    }

    /// Returns the data port for a peer that announces `told`, or none.
    pub(crate) fn port_for_data(&self, told: Option<u16>) -> u16 {
        self.data_port.or(told).unwrap_or_else(|| self.control_port.wrapping_add(1))
    }

    /// Returns the addresses for a port.
    pub(crate) fn addresses(&self, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), port).to_socket_addrs()?.collect())
    }
}

/// The text is not a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// It has another form.
    #[error("expected HOST, HOST:PORT or HOST:PORT:DATA_PORT, for example `collector.lan:5342` or `[::1]`")]
    Syntax,
    /// The host's name is too long.
    #[error("the name of a host has at most {LONGEST_HOST} bytes, and this one has {0}")]
    HostLength(usize),
}

impl FromStr for Destination {
    type Err = DestinationError;

    /// Parses `HOST`, `HOST:PORT`, `HOST:PORT:DATA_PORT`; an IPv6 address is in brackets.
    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let wrong = || DestinationError::Syntax;
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
            length => Err(DestinationError::HostLength(length)),
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
        assert_eq!("x".repeat(300).parse::<Destination>(), Err(DestinationError::HostLength(300)));
    }
}
