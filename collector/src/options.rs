//! Settings of a collector.

use crate::hub::Rotation;
use ipnet::IpNet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_wire::live::LIVE_PORT;
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

/// The settings of a [`Collector`](crate::Collector). By default it listens on loopback addresses, on the ports of `lttng-relayd`, without a
/// [key](Self::key). Listening on other addresses requires one.
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) output: PathBuf,
    pub(crate) control: SocketAddr,
    pub(crate) data: SocketAddr,
    pub(crate) live: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) memory: u64,
    pub(crate) files: Option<usize>,
    pub(crate) quota: Option<u64>,
    pub(crate) rotation: Rotation,
    pub(crate) write_rate: Option<u64>,
    pub(crate) open_files: Option<usize>,
    pub(crate) key: Option<SharedKey>,
    pub(crate) is_keyless: bool,
    pub(crate) allows_stock: Vec<IpNet>,
    pub(crate) allows_stock_viewers: Vec<IpNet>,
    pub(crate) gap_packets: usize,
    pub(crate) gap_time: Duration,
    #[cfg(feature = "nats")]
    pub(crate) nats: Option<crate::nats::Settings>,
    #[cfg(feature = "nats")]
    pub(crate) publish: Option<crate::publish::Settings>,
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

impl Options {
    /// Returns the default settings for a collector that creates and writes the directory `output`.
    pub fn new(output: impl AsRef<Path>) -> Self {
        Self {
            output: output.as_ref().to_owned(),
            control: loopback(CONTROL_PORT),
            data: loopback(DATA_PORT),
            live: loopback(LIVE_PORT),
            metrics: None,
            memory: DEFAULT_MEMORY,
            files: None,
            quota: None,
            rotation: Rotation::default(),
            write_rate: None,
            open_files: None,
            key: None,
            is_keyless: false,
            allows_stock: Vec::new(),
            allows_stock_viewers: Vec::new(),
            gap_packets: DEFAULT_GAP_PACKETS,
            gap_time: DEFAULT_GAP_TIME,
            #[cfg(feature = "nats")]
            nats: None,
            #[cfg(feature = "nats")]
            publish: None,
        }
    }

    /// Also takes traces from a NATS broker, and shares them with other collectors. A collector that does not renew its lease on a trace within
    /// `lease`, at least [`MIN_LEASE`](crate::MIN_LEASE), loses the trace to another one. The [key](Self::key) does not apply to the broker.
    #[cfg(feature = "nats")]
    pub fn nats(mut self, broker: tracepoint_wire::nats::Broker, lease: Duration) -> Self {
        self.nats = Some(crate::nats::Settings { broker, lease: lease.max(crate::nats::MIN_LEASE) });
        self
    }

    /// Publishes sessions of tracepoint senders to a NATS broker, in the form in which a sender publishes by itself. On shutdown, stored packets are
    /// published for at most `flush`; the next collector with this directory publishes the rest. Traces that were taken from a broker are not
    /// published.
    #[cfg(feature = "nats")]
    pub fn publish(mut self, broker: tracepoint_wire::nats::Broker, flush: Duration) -> Self {
        self.publish = Some(crate::publish::Settings { broker, flush });
        self
    }

    /// The address for control connections of senders; port 0 selects any free one.
    pub const fn control(mut self, address: SocketAddr) -> Self {
        self.control = address;
        self
    }

    /// The address for packets of senders; port 0 selects any free one.
    pub const fn data(mut self, address: SocketAddr) -> Self {
        self.data = address;
        self
    }

    /// The address for viewers; port 0 selects any free one.
    pub const fn live(mut self, address: SocketAddr) -> Self {
        self.live = address;
        self
    }

    /// The HTTP address for Prometheus metrics; port 0 selects any free one. Disabled by default.
    pub const fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// Maximum number of bytes of packets and metadata in memory, at least [`MIN_MEMORY`]; [`DEFAULT_MEMORY`] by default. The largest accepted
    /// packet has half of that.
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = if bytes < MIN_MEMORY { MIN_MEMORY } else { bytes };
        self
    }

    /// Maximum number of open stream files; each stream has two, and its metadata two. One address gets at most half of them, the next one half of
    /// the rest, and so on; a sender gets at most half of its address's share. The default, and upper bound, is this process's limit on open files
    /// minus those reserved for connections: 680 of 1024, or 56,960 of 65,536. A limit above 262,144 is treated as 262,144, which leaves 253,568.
    pub const fn files(mut self, files: usize) -> Self {
        self.files = Some(files);
        self
    }

    /// Number of packets that may wait behind a missing one before that one is requested at once; 256 by default.
    pub const fn gap_packets(mut self, packets: usize) -> Self {
        self.gap_packets = packets;
        self
    }

    /// Time after which a requested packet is given up, if the sender repeats nothing of its stream meanwhile; 2 s by default. Viewers see later
    /// packets delayed by that time.
    pub const fn gap_time(mut self, time: Duration) -> Self {
        self.gap_time = time;
        self
    }

    /// Requires no key, even where other machines can connect: any of them may store and read traces. Without this or a [key](Self::key), a collector
    /// listens on loopback addresses only.
    pub const fn without_key(mut self) -> Self {
        self.is_keyless = true;
        self
    }

    /// Accepts only senders and viewers that have this key. Stock ones cannot have it, and are refused unless [`allow_stock`](Self::allow_stock) or
    /// [`allow_stock_viewers`](Self::allow_stock_viewers) permits their network.
    pub fn key(mut self, key: SharedKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Accepts stock senders from these networks without the key.
    pub fn allow_stock(mut self, from: impl IntoIterator<Item = IpNet>) -> Self {
        self.allows_stock.extend(from);
        self
    }

    /// Serves viewers from these networks without the key. A viewer that is given a key refuses a collector that does not prove it has the key.
    pub fn allow_stock_viewers(mut self, from: impl IntoIterator<Item = IpNet>) -> Self {
        self.allows_stock_viewers.extend(from);
        self
    }

    /// Returns whether the collector would accept connections from other machines without a key.
    pub(crate) fn needs_key(&self) -> bool {
        let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        self.key.is_none() && !self.is_keyless && ![self.control, self.data, self.live].iter().all(is_local)
    }

    /// For tests: limits writes to this number of bytes per second, like a slow disk.
    #[doc(hidden)]
    pub const fn write_rate(mut self, bytes: u64) -> Self {
        self.write_rate = Some(bytes);
        self
    }

    /// For tests: computes the limits of connections and files as if this were the limit on open files.
    #[doc(hidden)]
    pub const fn open_files(mut self, limit: usize) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// Maximum size of the output directory in bytes; senders wait while it is reached. Unlimited by default.
    pub const fn quota(mut self, bytes: u64) -> Self {
        self.quota = Some(bytes);
        self
    }

    /// Starts a new chunk of a session (`chunk-000001` and so on in its directory) when the current one has this many bytes of packets. Each chunk is
    /// a complete trace. Applies to tracepoint senders; stock senders rotate by themselves.
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotation.size = Some(bytes);
        self
    }

    /// Starts a new chunk of a session when the current one has this age and at least one packet. Applies to tracepoint senders.
    pub const fn rotate_every(mut self, time: Duration) -> Self {
        self.rotation.every = Some(time);
        self
    }

    /// Number of chunks kept per session, at least 1; older ones are removed. With a [quota](Self::quota), chunks are also removed while less than an
    /// eighth of it is free, the oldest of all running sessions first. By default all are kept.
    pub const fn keep(mut self, chunks: usize) -> Self {
        self.rotation.keep = Some(chunks);
        self
    }
}
