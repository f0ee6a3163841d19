//! How a collector is set up.

use crate::hub::Rotation;
use ipnet::IpNet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_wire::live::LIVE_PORT;
use tracepoint_wire::relay::{CONTROL_PORT, DATA_PORT};
use tracepoint_wire::stream::SharedKey;

/// The limit on memory by default, in bytes.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// The least limit on memory, in bytes.
pub const LEAST_MEMORY: u64 = 1 << 20;

/// How many packets may wait behind a missing one, by default.
pub const DEFAULT_GAP_PACKETS: usize = 256;
/// How long a missing packet is waited for, by default.
pub const DEFAULT_GAP_TIME: Duration = Duration::from_secs(2);

/// The settings of a [`Collector`](crate::Collector). By default it listens on the loopback interface, on the ports of `lttng-relayd`, and asks for no
/// [key](Self::key); on other addresses it has one.
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
    /// The default settings for a collector that writes below this directory, which it creates.
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

    /// Takes traces from a NATS broker, too, and shares them with other collectors. One that does not renew the lease of a trace for `lease`, at
    /// least [`LEAST_LEASE`](crate::LEAST_LEASE), loses it to another one. The broker is asked for no key of ours.
    #[cfg(feature = "nats")]
    pub fn nats(mut self, broker: tracepoint_wire::nats::Broker, lease: Duration) -> Self {
        self.nats = Some(crate::nats::Settings { broker, lease: lease.max(crate::nats::LEAST_LEASE) });
        self
    }

    /// Publishes to a NATS broker what senders of our own send, as a sender would that publishes itself. At the end, what is stored is published for
    /// at most `flush`; the rest is published by the next collector with this directory. Traces that this one takes from a broker are not published.
    #[cfg(feature = "nats")]
    pub fn publish(mut self, broker: tracepoint_wire::nats::Broker, flush: Duration) -> Self {
        self.publish = Some(crate::publish::Settings { broker, flush });
        self
    }

    /// Where senders open their control connections; port 0: any free one.
    pub const fn control(mut self, address: SocketAddr) -> Self {
        self.control = address;
        self
    }

    /// Where senders send packets; port 0: any free one.
    pub const fn data(mut self, address: SocketAddr) -> Self {
        self.data = address;
        self
    }

    /// Where viewers connect; port 0: any free one.
    pub const fn live(mut self, address: SocketAddr) -> Self {
        self.live = address;
        self
    }

    /// Where Prometheus asks for metrics, over HTTP; port 0: any free one. Nowhere by default.
    pub const fn metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self
    }

    /// The most bytes of packets and metadata that wait in memory, at least [`LEAST_MEMORY`]; [`DEFAULT_MEMORY`] by default. The largest packet
    /// that is accepted has half of that.
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = if bytes < LEAST_MEMORY { LEAST_MEMORY } else { bytes };
        self
    }

    /// The most files that are open for streams: two for each stream, and its metadata. One address gets at most half of them, the next one half of the
    /// rest, and so on; a sender gets at most half of what its address may have. By default, and at most, what connections leave of the limit of
    /// this process on open files: 680 of 1024, and 56,960 of 65,536. Limits above 262,144 count as that, which leaves 253,568.
    pub const fn files(mut self, files: usize) -> Self {
        self.files = Some(files);
        self
    }

    /// How many packets may wait behind a missing one before it is asked for at once; 256 by default.
    pub const fn gap_packets(mut self, packets: usize) -> Self {
        self.gap_packets = packets;
        self
    }

    /// How long a packet that was asked for is waited for while nothing of its stream is sent again, before it is given up; 2 s by default. Viewers
    /// see later packets that much later.
    pub const fn gap_time(mut self, time: Duration) -> Self {
        self.gap_time = time;
        self
    }

    /// Asks for no key, also where other machines can connect: whoever can may store and read traces. Without this and a [key](Self::key), a collector
    /// listens on loopback addresses only.
    pub const fn without_key(mut self) -> Self {
        self.is_keyless = true;
        self
    }

    /// Takes only senders and viewers that have this key. Stock ones, which have none, are refused, unless [`allow_stock`](Self::allow_stock) and
    /// [`allow_stock_viewers`](Self::allow_stock_viewers) say otherwise.
    pub fn key(mut self, key: SharedKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Takes stock senders from these networks also where others are asked for a key.
    pub fn allow_stock(mut self, from: impl IntoIterator<Item = IpNet>) -> Self {
        self.allows_stock.extend(from);
        self
    }

    /// Serves viewers in these networks without asking for the key. They prove nothing, and one that has the key refuses such a collector.
    pub fn allow_stock_viewers(mut self, from: impl IntoIterator<Item = IpNet>) -> Self {
        self.allows_stock_viewers.extend(from);
        self
    }

    /// Whether it listens for others than the programs of this machine, and would ask none for a key.
    pub(crate) fn needs_key(&self) -> bool {
        let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        self.key.is_none() && !self.is_keyless && ![self.control, self.data, self.live].iter().all(is_local)
    }

    /// For tests: writes as a disk would that takes so many bytes per second.
    #[doc(hidden)]
    pub const fn write_rate(mut self, bytes: u64) -> Self {
        self.write_rate = Some(bytes);
        self
    }

    /// For tests: bounds connections and files as where this is the limit on open files.
    #[doc(hidden)]
    pub const fn open_files(mut self, limit: usize) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// The largest size of the output directory in bytes; senders wait when it is reached. No limit by default.
    pub const fn quota(mut self, bytes: u64) -> Self {
        self.quota = Some(bytes);
        self
    }

    /// A session of our senders goes on in another chunk (`chunk-000001` and so on in its directory) when the present one has so many bytes of
    /// packets. Each chunk is a trace by itself. Sessions of stock senders are divided by these.
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotation.size = Some(bytes);
        self
    }

    /// A session of our senders goes on in another chunk when the present one is so old and has a packet.
    pub const fn rotate_every(mut self, time: Duration) -> Self {
        self.rotation.every = Some(time);
        self
    }

    /// How many chunks of a session are kept, at least 1; older ones are removed. With a [quota](Self::quota), further ones are removed, the
    /// oldest of all running sessions first, while less than an eighth of it is free. All are kept by default.
    pub const fn keep(mut self, chunks: usize) -> Self {
        self.rotation.keep = Some(chunks);
        self
    }
}
