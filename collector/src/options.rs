//! Settings of a collector.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_wire::live::LIVE_PORT;
#[cfg(feature = "nats")]
use tracepoint_wire::nats::Broker;
use tracepoint_wire::relay::{CONTROL_PORT, DATA_PORT};
use tracepoint_wire::stream::SharedKey;

/// Default limit on packet memory, in bytes.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// Minimum for the limit on packet memory, in bytes.
pub const MIN_MEMORY: u64 = 1 << 20;

/// Default number of packets that may wait behind a missing one.
pub const DEFAULT_GAP_PACKETS: usize = 256;
/// Default time that a missing packet is waited for.
pub const DEFAULT_GAP_TIME: Duration = Duration::from_secs(2);

/// Default time after which an unchanged lease may be taken over.
#[cfg(feature = "nats")]
pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);
/// Minimum lease time. Commits happen at a quarter of it, and must succeed in time.
#[cfg(feature = "nats")]
pub const MIN_LEASE: Duration = Duration::from_secs(1);
/// Default time for publishing during shutdown.
#[cfg(feature = "nats")]
pub const DEFAULT_FLUSH: Duration = Duration::from_secs(10);

/// The settings of a [`Collector`](crate::Collector). By default it listens on loopback addresses, on the ports of `lttng-relayd`, without a
/// [key](Self::key). Listening on other addresses requires one.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory that the collector creates and writes.
    pub output: PathBuf,
    /// The address for control connections of senders; port 0 selects any free one.
    pub control: SocketAddr,
    /// The address for packets of senders; port 0 selects any free one.
    pub data: SocketAddr,
    /// The address for viewers; port 0 selects any free one.
    pub live: SocketAddr,
    /// The HTTP address for Prometheus metrics; port 0 selects any free one. Disabled by default.
    pub metrics: Option<SocketAddr>,
    /// Maximum number of bytes of packets and metadata in memory, at least [`MIN_MEMORY`]; [`DEFAULT_MEMORY`] by default. The largest accepted
    /// packet has half of that.
    pub memory: u64,
    /// Maximum number of open stream files; each stream has two, and its metadata two. One address gets at most half of them, the next one half of
    /// the rest, and so on; a sender gets at most half of its address's share. The default, and upper bound, is this process's limit on open files
    /// minus those reserved for connections: 680 of 1024, or 56,960 of 65,536. A limit above 262,144 is treated as 262,144, which leaves 253,568.
    pub files: Option<usize>,
    /// Maximum size of the output directory in bytes; senders wait while it is reached. Unlimited by default.
    pub quota: Option<u64>,
    /// Starts a new chunk of a session (`chunk-000001` and so on in its directory) when the current one has this many bytes of packets. Each chunk is
    /// a complete trace. Applies to tracepoint senders; stock senders rotate by themselves.
    pub rotate_size: Option<u64>,
    /// Starts a new chunk of a session when the current one has this age and at least one packet. Applies to tracepoint senders.
    pub rotate_every: Option<Duration>,
    /// Number of chunks kept per session, at least 1; older ones are removed. With a [quota](Self::quota), chunks are also removed while less than an
    /// eighth of it is free, the oldest of all running sessions first. By default all are kept.
    pub keep: Option<usize>,
    /// Accepts only senders and viewers that have this key. Stock ones cannot have it, and are refused unless [`allow_stock`](Self::allow_stock) or
    /// [`allow_stock_viewers`](Self::allow_stock_viewers) permits their network.
    pub key: Option<SharedKey>,
    /// Requires no key, even where other machines can connect: any of them may store and read traces. Without this or a [key](Self::key), a collector
    /// listens on loopback addresses only.
    pub without_key: bool,
    /// Accepts stock senders from these networks without the key.
    pub allow_stock: Vec<IpNet>,
    /// Serves viewers from these networks without the key. A viewer that is given a key refuses a collector that does not prove it has the key.
    pub allow_stock_viewers: Vec<IpNet>,
    /// Number of packets that may wait behind a missing one before that one is requested at once; 256 by default.
    pub gap_packets: usize,
    /// Time after which a requested packet is given up, if the sender repeats nothing of its stream meanwhile; 2 s by default. Viewers see later
    /// packets delayed by that time.
    pub gap_time: Duration,
    /// Also takes traces from a NATS broker, and shares them with other collectors. The [key](Self::key) does not apply to the broker.
    #[cfg(feature = "nats")]
    pub nats: Option<NatsOptions>,
    /// Publishes sessions of tracepoint senders to a NATS broker, in the form in which a sender publishes by itself. Traces that were taken from a
    /// broker are not published.
    #[cfg(feature = "nats")]
    pub publish: Option<PublishOptions>,
    /// For tests: limits writes to this number of bytes per second, like a slow disk.
    #[doc(hidden)]
    pub write_rate: Option<u64>,
    /// For tests: computes the limits of connections and files as if this were the limit on open files.
    #[doc(hidden)]
    pub open_files: Option<usize>,
}

/// Taking traces from a NATS broker.
#[cfg(feature = "nats")]
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The broker.
    pub broker: Broker,
    /// A collector that does not renew its lease on a trace within this time, at least [`MIN_LEASE`], loses the trace to another one.
    pub lease: Duration,
}

/// Publishing to a NATS broker.
#[cfg(feature = "nats")]
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// The broker.
    pub broker: Broker,
    /// On shutdown, stored packets are published for at most this time; the next collector with this directory publishes the rest.
    pub flush: Duration,
}

impl Options {
    /// Returns the default settings for a collector that creates and writes the directory `output`.
    pub fn new(output: impl AsRef<Path>) -> Self {
        let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            output: output.as_ref().to_owned(),
            control: loopback(CONTROL_PORT),
            data: loopback(DATA_PORT),
            live: loopback(LIVE_PORT),
            metrics: None,
            memory: DEFAULT_MEMORY,
            files: None,
            quota: None,
            rotate_size: None,
            rotate_every: None,
            keep: None,
            key: None,
            without_key: false,
            allow_stock: Vec::new(),
            allow_stock_viewers: Vec::new(),
            gap_packets: DEFAULT_GAP_PACKETS,
            gap_time: DEFAULT_GAP_TIME,
            #[cfg(feature = "nats")]
            nats: None,
            #[cfg(feature = "nats")]
            publish: None,
            write_rate: None,
            open_files: None,
        }
    }

    /// Returns whether the collector would accept connections from other machines without a key.
    pub(crate) fn needs_key(&self) -> bool {
        let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        self.key.is_none() && !self.without_key && ![self.control, self.data, self.live].iter().all(is_local)
    }
}
