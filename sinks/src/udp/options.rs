//! Options of the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_reader::udp::wire::{SERVER_PORT, SERVER_PORT_VARIABLE};

/// The default limit of the bytes that wait for a client.
pub const DEFAULT_LIMIT: usize = 64 << 20;
/// The default rate, in bytes per second, to a client on this machine in the legacy layout. At this rate a burst fits into the default
/// buffer of a socket, so that nothing is lost there unnoticed while the client keeps up.
pub const DEFAULT_LEGACY_RATE: u64 = 4 << 20;
/// The default rate, in bytes per second, to an allowed address of another machine in the legacy layout.
pub const DEFAULT_ALLOWED_RATE: u64 = 1 << 20;

/// Which events are dropped when the queue for the client is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropPolicy {
    /// The oldest: a client that connects late sees the end.
    #[default]
    Oldest,
    /// The newest: a client sees the beginning.
    Newest,
}

/// The content of a message in the legacy layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacyContent {
    /// The text of the event: name and fields.
    #[default]
    Text,
    /// The record of the event: header word and packed fields.
    Record,
}

/// Options of a UDP trace server. The default listens on `127.0.0.1`, at the port in `TRACE_SERVER_PORT`, else at 5556.
///
/// ```
/// use tracepoint_sinks::udp::{DropPolicy, UdpOptions};
///
/// let options = UdpOptions::default().address(([127, 0, 0, 1], 0).into()).limit(1 << 20).drops(DropPolicy::Newest);
/// ```
#[derive(Clone, Debug)]
pub struct UdpOptions {
    pub(super) address: SocketAddr,
    pub(super) limit: usize,
    pub(super) drops: DropPolicy,
    pub(super) content: LegacyContent,
    pub(super) batch: bool,
    pub(super) rate: Option<u64>,
    pub(super) legacy_rate: u64,
    pub(super) trusts_loopback: bool,
    pub(super) allowed: Vec<IpAddr>,
    pub(super) allowed_rate: u64,
    pub(super) idle: Option<Duration>,
    pub(super) max_session: Option<Duration>,
    pub(super) client_timeout: Duration,
    pub(super) flush: Duration,
    pub(super) linger: Duration,
    pub(super) events_from: Option<PathBuf>,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port_from_environment())),
            limit: DEFAULT_LIMIT,
            drops: DropPolicy::Oldest,
            content: LegacyContent::Text,
            batch: true,
            rate: None,
            legacy_rate: DEFAULT_LEGACY_RATE,
            trusts_loopback: true,
            allowed: Vec::new(),
            allowed_rate: DEFAULT_ALLOWED_RATE,
            idle: None,
            max_session: None,
            client_timeout: Duration::from_secs(5),
            flush: Duration::from_secs(10),
            linger: Duration::ZERO,
            events_from: None,
        }
    }
}

impl<A: Into<SocketAddr>> From<A> for UdpOptions {
    /// The default options, on this address.
    fn from(address: A) -> Self {
        Self { address: address.into(), ..Self::default() }
    }
}

/// The port in the environment variable `TRACE_SERVER_PORT`, else 5556.
pub fn port_from_environment() -> u16 {
    std::env::var(SERVER_PORT_VARIABLE).ok().and_then(|port| port.trim().parse().ok()).unwrap_or(SERVER_PORT)
}

impl UdpOptions {
    /// The address to listen on. Port 0 takes a free one. To serve other machines, listen on an address of this machine, or on all
    /// (`0.0.0.0`, `::`).
    #[must_use]
    pub const fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Limits the bytes of events that wait for a client. More events are dropped and counted. The default is 64 MiB.
    #[must_use]
    pub const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Which events are dropped when the limit is reached. The default is the oldest.
    #[must_use]
    pub const fn drops(mut self, drops: DropPolicy) -> Self {
        self.drops = drops;
        self
    }

    /// The content of messages in the legacy layout. The default is text.
    #[must_use]
    pub const fn content(mut self, content: LegacyContent) -> Self {
        self.content = content;
        self
    }

    /// Whether the batch layout is offered. The default is yes. Without the offer a session begins 100 ms sooner.
    #[must_use]
    pub const fn offer_batches(mut self, offer: bool) -> Self {
        self.batch = offer;
        self
    }

    /// Limits the rate of sending, in bytes per second. By default it is not limited.
    #[must_use]
    pub const fn rate(mut self, bytes_per_second: u64) -> Self {
        self.rate = Some(bytes_per_second);
        self
    }

    /// Limits the rate in the legacy layout, in bytes per second: its clients cannot report that they are overrun. The default is 4 MiB/s.
    #[must_use]
    pub const fn legacy_rate(mut self, bytes_per_second: u64) -> Self {
        self.legacy_rate = bytes_per_second;
        self
    }

    /// Whether clients on this machine are served without address validation, and may use the legacy layout. The default is yes.
    #[must_use]
    pub const fn trust_loopback(mut self, trust: bool) -> Self {
        self.trusts_loopback = trust;
        self
    }

    /// Allows the legacy layout to an address of another machine, without address validation. An attacker who can forge this address can
    /// cause the trace to be sent there, at `allowed_rate`.
    #[must_use]
    pub fn allow(mut self, address: IpAddr) -> Self {
        self.allowed.push(address.to_canonical());
        self
    }

    /// Limits the rate to an allowed address in the legacy layout, in bytes per second. The default is 1 MiB/s.
    #[must_use]
    pub const fn allowed_rate(mut self, bytes_per_second: u64) -> Self {
        self.allowed_rate = bytes_per_second;
        self
    }

    /// Ends a session in the legacy layout when there was nothing to send for this time. Not done by default.
    #[must_use]
    pub const fn idle(mut self, time: Duration) -> Self {
        self.idle = Some(time);
        self
    }

    /// Ends a session in the legacy layout after this time. Not done by default.
    #[must_use]
    pub const fn max_session(mut self, time: Duration) -> Self {
        self.max_session = Some(time);
        self
    }

    /// Gives up a client of the batch layout that has sent nothing for this time. The default is 5 s.
    #[must_use]
    pub const fn client_timeout(mut self, time: Duration) -> Self {
        self.client_timeout = time;
        self
    }

    /// How long the server continues to serve its client after the end of the trace. The rest is lost. The default is 10 s.
    #[must_use]
    pub const fn flush(mut self, time: Duration) -> Self {
        self.flush = time;
        self
    }

    /// How long a server without a client waits for one after the end of the trace. By default it does not wait.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Ingests events from a FIFO (one per line), or from a Unix datagram socket (one per datagram). If nothing exists at `path`, the
    /// socket is created.
    #[must_use]
    pub fn events_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.events_from = Some(path.into());
        self
    }
}
