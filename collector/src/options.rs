//! How a collector is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tracepoint_reader::net::live::LIVE_PORT;
use tracepoint_reader::net::relay::{CONTROL_PORT, DATA_PORT};

/// The limit on memory by default, in bytes.
pub const DEFAULT_MEMORY: u64 = 64 << 20;
/// The least limit on memory, in bytes.
pub const LEAST_MEMORY: u64 = 1 << 20;

/// The settings of a [`Collector`](crate::Collector). By default it listens on the loopback interface, on the ports of `lttng-relayd`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) output: PathBuf,
    pub(crate) control: SocketAddr,
    pub(crate) data: SocketAddr,
    pub(crate) live: SocketAddr,
    pub(crate) memory: u64,
    pub(crate) quota: Option<u64>,
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
            memory: DEFAULT_MEMORY,
            quota: None,
        }
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

    /// The most bytes of packets and metadata that wait in memory, at least [`LEAST_MEMORY`]; [`DEFAULT_MEMORY`] by default. The largest packet
    /// that is accepted has half of that.
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = if bytes < LEAST_MEMORY { LEAST_MEMORY } else { bytes };
        self
    }

    /// The largest size of the output directory in bytes; senders wait when it is reached. No limit by default.
    pub const fn quota(mut self, bytes: u64) -> Self {
        self.quota = Some(bytes);
        self
    }
}
