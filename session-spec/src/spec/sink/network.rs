//! Sinks that send over a network.

use super::default_size;
use crate::spec::{SpecError, StreamSpec};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The events that a UDP server drops if too many wait for its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DropPolicy {
    /// Those that have waited longest.
    #[default]
    Oldest,
    /// New events.
    Newest,
}

/// A UDP trace server in each process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UdpSinkSpec {
    /// The address; the default is 127.0.0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port, which only one process can use; 0 for any free port. By default 5556 in the first process, and any free port in the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Maximum number of bytes of events that wait for a client, in each process; the default is 64 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The events to drop beyond that limit; by default the oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<DropPolicy>,
    /// Addresses of other machines to which the server sends single events without proof of address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<IpAddr>,
    /// Maximum number of bytes that the server sends per second; the default is 4 MiB for single events (1 MiB of them to other machines),
    /// and no limit for batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Maximum number of single events that the server sends per second; the default is 4,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<u32>,
    /// Without effect; every kind of sink has this key.
    #[serde(default = "default_size")]
    pub max_size: u64,
}

impl UdpSinkSpec {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self {
            address: Some(address.ip()),
            port: Some(address.port()),
            limit: None,
            drop: None,
            allow: Vec::new(),
            rate: None,
            pace: None,
            max_size: default_size(),
        }
    }

    /// Returns the address; its port is 0 also if the default port is used.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), self.port.unwrap_or(0))
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.rate == Some(0) || self.pace == Some(0) {
            return Err(SpecError::invalid("the `rate` and the `pace` of a server must be more than 0"));
        }
        Ok(())
    }
}

/// A stream from each process to a collector, a relay or a broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StreamSinkSpec {
    /// Its settings.
    pub stream: StreamSpec,
    /// Without effect; every kind of sink has this key.
    #[serde(default = "default_size")]
    pub max_size: u64,
}

impl StreamSinkSpec {
    pub(super) const fn new(stream: StreamSpec) -> Self {
        Self { stream, max_size: default_size() }
    }
}
