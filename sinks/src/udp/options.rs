//! How a server behaves.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_reader::udp::wire::{SERVER_PORT, SERVER_PORT_VARIABLE};

/// How many bytes of events wait for a client, unless told otherwise.
pub const DEFAULT_LIMIT: usize = 64 << 20;
/// How many bytes per second go to a client on this machine in the stock layout, unless told otherwise: what is sent in one go then
/// fits into the buffer that a socket has by default, so that nothing is lost there unseen as long as the client keeps up.
pub const DEFAULT_LEGACY_RATE: u64 = 4 << 20;
/// How many bytes per second go to an allowed address of another machine in the stock layout, unless told otherwise.
pub const DEFAULT_ALLOWED_RATE: u64 = 1 << 20;

/// Which events are dropped when too many wait for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropPolicy {
    /// Those that wait longest: a client that comes late sees the end.
    #[default]
    Oldest,
    /// Those that come: a client sees the beginning.
    Newest,
}

/// What an event is in a message of the stock layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LegacyContent {
    /// Its text: name and fields.
    #[default]
    Text,
    /// Its record: header word and packed fields.
    Record,
}

/// How a UDP trace server behaves. The default listens on `127.0.0.1`, at the port that `TRACE_SERVER_PORT` names or else 5556.
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

/// The port that `TRACE_SERVER_PORT` names; 5556 where it names none.
pub fn port_from_environment() -> u16 {
    std::env::var(SERVER_PORT_VARIABLE).ok().and_then(|port| port.trim().parse().ok()).unwrap_or(SERVER_PORT)
}

impl UdpOptions {
    /// Where to listen. Port 0 takes a free one. To be heard by other machines takes an address of this one, or that of all
    /// (`0.0.0.0`, `::`).
    #[must_use]
    pub const fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// How many bytes of events wait for a client: 64 MiB unless told otherwise. What is more is dropped and counted.
    #[must_use]
    pub const fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Which events are dropped when too many wait: the oldest, unless told otherwise.
    #[must_use]
    pub const fn drops(mut self, drops: DropPolicy) -> Self {
        self.drops = drops;
        self
    }

    /// What an event is in the stock layout: its text, unless told otherwise.
    #[must_use]
    pub const fn content(mut self, content: LegacyContent) -> Self {
        self.content = content;
        self
    }

    /// Whether the batch layout is offered: yes, unless told otherwise. Without, a session begins 100 ms sooner.
    #[must_use]
    pub const fn offer_batches(mut self, offer: bool) -> Self {
        self.batch = offer;
        self
    }

    /// How many bytes of messages per second are sent at most: as many as the system takes, unless told otherwise.
    #[must_use]
    pub const fn rate(mut self, bytes_per_second: u64) -> Self {
        self.rate = Some(bytes_per_second);
        self
    }

    /// How many bytes per second are sent in the stock layout, in which a client cannot say that it is overrun: 4 MiB, unless told otherwise.
    #[must_use]
    pub const fn legacy_rate(mut self, bytes_per_second: u64) -> Self {
        self.legacy_rate = bytes_per_second;
        self
    }

    /// Whether clients on this machine need not prove their address, and get the stock layout: yes, unless told otherwise.
    #[must_use]
    pub const fn trust_loopback(mut self, trust: bool) -> Self {
        self.trusts_loopback = trust;
        self
    }

    /// Adds an address of another machine that gets the stock layout too, and need not prove that it is its own: whoever can
    /// forge it can have the trace sent there, no faster than `allowed_rate`.
    #[must_use]
    pub fn allow(mut self, address: IpAddr) -> Self {
        self.allowed.push(address.to_canonical());
        self
    }

    /// How many bytes per second go to an allowed address in the stock layout: 1 MiB, unless told otherwise.
    #[must_use]
    pub const fn allowed_rate(mut self, bytes_per_second: u64) -> Self {
        self.allowed_rate = bytes_per_second;
        self
    }

    /// Ends a session in the stock layout when nothing could be sent for so long. Never, unless told otherwise.
    #[must_use]
    pub const fn idle(mut self, time: Duration) -> Self {
        self.idle = Some(time);
        self
    }

    /// Ends a session in the stock layout when it has lasted for so long. Never, unless told otherwise.
    #[must_use]
    pub const fn max_session(mut self, time: Duration) -> Self {
        self.max_session = Some(time);
        self
    }

    /// Gives up a client of the batch layout that has not been heard of for so long: 5 s, unless told otherwise.
    #[must_use]
    pub const fn client_timeout(mut self, time: Duration) -> Self {
        self.client_timeout = time;
        self
    }

    /// How long the server goes on serving its client when the trace has ended: 10 s, unless told otherwise. What is not sent by then is lost.
    #[must_use]
    pub const fn flush(mut self, time: Duration) -> Self {
        self.flush = time;
        self
    }

    /// How long a server without a client waits for one when the trace has ended: not at all, unless told otherwise.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Takes events from a FIFO (each line is one), or from a Unix datagram socket (each datagram is one), which is made if
    /// there is nothing at `path`.
    #[must_use]
    pub fn events_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.events_from = Some(path.into());
        self
    }
}
