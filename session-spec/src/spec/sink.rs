//! A destination for the packets of a session: one `[[sink]]` of `session.toml`.

use super::SpecError;
use super::stream::StreamSpec;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_sinks::{CtfError, Sink, dated_directory, remove_traces};

/// The supported kinds of sinks.
const KINDS: [&str; 5] = ["ctf", "dt", "stream", "text", "udp"];
/// The kind of a sink that is an object of the program: the sink cannot be made from its description.
const OBJECT: &str = "object";
/// Default number of packets in a dt file.
const SLOTS: u32 = 256;

/// A destination for the packets of a session in each process.
///
/// ```
/// use tracepoint_session_spec::SinkSpec;
///
/// let chunks = SinkSpec::ctf("/var/tmp/shop").rotate_size(64 << 20).keep(10);
/// let newest = SinkSpec::dt("/var/tmp/shop.dt").slots(1024);
/// let live = SinkSpec::udp(([127, 0, 0, 1], 0).into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SinkSpec {
    /// The format: `ctf`, `dt`, `text`, `udp` or `stream`; or `object` for a sink that the program passed to the session.
    pub kind: String,
    /// The name of an `object`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// An absolute path. For `ctf` a directory in which each process makes a directory. For `dt` and `text` a file, used by one process, with
    /// files for other processes next to it; or a directory in which each process makes a file. `text` without a path writes to the standard
    /// error of each process.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub path: PathBuf,
    /// Maximum number of bytes that a process writes; further events are lost and counted. For a dt file its maximum size.
    #[serde(default = "SinkSpec::default_size")]
    pub max_size: u64,
    /// Number of packets in a dt file; the default is 256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The address of a UDP server; the default is 127.0.0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port of a UDP server, which only one process can use; 0 for any free port. By default 5556 in the first process, and any free port
    /// in the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Maximum number of bytes of events that wait for a UDP client, in each process; the default is 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The events to drop beyond that limit: `oldest` (the default) or `newest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// Addresses of other machines to which a UDP server sends single events without proof of address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<IpAddr>,
    /// Maximum number of bytes that a UDP server sends per second; the default is 4 MiB for single events (1 MiB of them to other
    /// machines), and no limit for batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Maximum number of single events that a UDP server sends per second; the default is 4,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<u32>,
    /// Size in bytes at which a CTF trace continues in a new chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_size: Option<u64>,
    /// Age in milliseconds at which a CTF trace continues in a new chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_every_ms: Option<u64>,
    /// Number of chunks that each process keeps: the newest, within `max_size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// The treatment of earlier traces in the `path` of CTF traces when the session is created: `replace` removes them, and `dated` writes
    /// to a new directory in it that is named by the time, such as `20261123T162431Z`. By default each process uses a free name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<String>,
    /// The settings of a stream over a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamSpec>,
}

impl SinkSpec {
    /// A CTF directory for each process, in the directory at the absolute path `path`; at most 1 GiB each.
    pub fn ctf(path: impl Into<PathBuf>) -> Self {
        Self::of("ctf", path.into())
    }

    /// A circular file with the newest 256 packets for each process, at the absolute path `path`; at most 1 GiB each.
    pub fn dt(path: impl Into<PathBuf>) -> Self {
        Self::of("dt", path.into())
    }

    /// Lines of text in a file at the absolute path `path`; at most 1 GiB for each process.
    pub fn text(path: impl Into<PathBuf>) -> Self {
        Self::of("text", path.into())
    }

    /// Lines of text on the standard error of each process.
    pub fn standard_error() -> Self {
        Self::of("text", PathBuf::new())
    }

    /// A UDP trace server in each process. Only one process can use a port other than 0.
    pub fn udp(address: SocketAddr) -> Self {
        let mut sink = Self::of("udp", PathBuf::new());
        (sink.address, sink.port) = (Some(address.ip()), Some(address.port()));
        sink
    }

    /// Streams the packets of each process to a collector or a relay.
    pub fn stream(stream: StreamSpec) -> Self {
        Self { stream: Some(stream), ..Self::of("stream", PathBuf::new()) }
    }

    fn of(kind: &str, path: PathBuf) -> Self {
        Self {
            kind: kind.to_owned(),
            name: None,
            path,
            max_size: Self::default_size(),
            slots: None,
            address: None,
            port: None,
            limit: None,
            drop: None,
            allow: Vec::new(),
            rate: None,
            pace: None,
            rotate_size: None,
            rotate_every_ms: None,
            keep: None,
            existing: None,
            stream: None,
        }
    }

    /// The description of a sink object.
    pub fn of_object(sink: &mut dyn Sink) -> Self {
        let output = sink.extension().and_then(|sink| sink.output());
        let path = output.map(|output| output.path).unwrap_or_default();
        Self { name: Some(sink.name()), ..Self::of(OBJECT, path) }
    }

    /// Returns whether it describes a sink object, which cannot be made from the description.
    pub(crate) fn is_object(&self) -> bool {
        self.kind == OBJECT
    }

    /// Limits the bytes written in each process; the events of further packets are lost and counted. The default is 1 GiB.
    #[must_use]
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// Sets the number of packets in a dt file.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Sets the size in bytes at which a CTF trace continues in a new chunk.
    #[must_use]
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotate_size = Some(bytes);
        self
    }

    /// Sets the number of chunks that a CTF trace keeps, the newest.
    #[must_use]
    pub const fn keep(mut self, chunks: u32) -> Self {
        self.keep = Some(chunks);
        self
    }

    /// Replaces the CTF traces that are in the directory when the session starts.
    #[must_use]
    pub fn replace(mut self) -> Self {
        self.existing = Some("replace".to_owned());
        self
    }

    /// Writes the CTF traces to a new directory in the path, named by the time when the session starts.
    #[must_use]
    pub fn dated(mut self) -> Self {
        self.existing = Some("dated".to_owned());
        self
    }

    /// Removes earlier traces, or names the directory by the time, as [`SinkSpec::existing`] requests, and then clears that request. Called
    /// when a session starts in code, and by `Controller::create`.
    ///
    /// # Errors
    ///
    /// If the directory contains anything other than traces, or cannot be changed.
    pub fn prepare(&mut self) -> Result<(), CtfError> {
        match self.existing.take().as_deref() {
            Some("replace") => remove_traces(&self.path),
            Some(_) => {
                self.path = dated_directory(&self.path);
                Ok(())
            }
            None => Ok(()),
        }
    }

    const fn default_size() -> u64 {
        1 << 30
    }

    /// Returns whether it has the same kind and destination as `other`.
    pub(super) fn is_at_same_place(&self, other: &Self) -> bool {
        let place = |sink: &Self| (sink.kind.clone(), sink.name.clone(), sink.path.clone());
        let peer = |sink: &Self| sink.stream.as_ref().map(|stream| stream.to.clone());
        place(self) == place(other) && self.socket_address() == other.socket_address() && peer(self) == peer(other)
    }

    /// Returns the address of a UDP server; its port is 0 also if the default port is used.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), self.port.unwrap_or(0))
    }

    /// The number of packets in a dt file.
    pub fn dt_slots(&self) -> u32 {
        self.slots.unwrap_or(SLOTS)
    }

    /// The interval at which a CTF trace continues in a new chunk.
    pub fn rotate_every(&self) -> Option<Duration> {
        self.rotate_every_ms.map(Duration::from_millis)
    }

    /// Checks the description.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let kind = self.kind.as_str();
        if self.is_object() {
            let name = self.name.as_deref().unwrap_or_default();
            return Err(SpecError::invalid(format!(
                "the sink `{name}` is an object of a program, and cannot be made from its description"
            )));
        }
        if !KINDS.contains(&kind) {
            let known = KINDS.join(", ");
            return Err(SpecError::invalid(format!("unknown kind of sink `{kind}`; there are {known}")));
        }
        if let Some((key, kinds)) = self.keys().find(|(_, kinds)| !kinds.contains(&kind)) {
            let kinds = kinds.join(" and ");
            return Err(SpecError::invalid(format!("`{key}` is for sinks of the kind {kinds}, not for `{kind}`")));
        }
        if kind == "stream" {
            let stream = self.stream.as_ref().ok_or_else(|| {
                SpecError::invalid(
                    "a sink of the kind `stream` needs a table `stream` with `to`, the address of the peer",
                )
            })?;
            stream.check()?;
        }
        let has_path = self.path != Path::new("");
        let needs_path = matches!(kind, "ctf" | "dt");
        if (needs_path || has_path) && (!self.path.is_absolute() || self.path.to_str().is_none()) {
            let path = self.path.display();
            return Err(SpecError::invalid(format!("the path of a sink must be absolute and UTF-8, unlike `{path}`")));
        }
        let wrong = match self {
            Self { slots: Some(slots), .. } if *slots == 0 || *slots > i32::MAX as u32 => {
                format!("the slots of a dt file must be from 1 to {}, not {slots}", i32::MAX)
            }
            Self { drop: Some(end), .. } if !matches!(end.as_str(), "oldest" | "newest") => {
                format!("`drop` must be `oldest` or `newest`, not `{end}`")
            }
            Self { existing: Some(existing), .. } if !matches!(existing.as_str(), "replace" | "dated") => {
                format!("`existing` must be `replace` or `dated`, not `{existing}`")
            }
            Self { rate: Some(0), .. } | Self { pace: Some(0), .. } => {
                "the `rate` and the `pace` of a server must be more than 0".to_owned()
            }
            Self { rotate_size: Some(0), .. } | Self { rotate_every_ms: Some(0), .. } => {
                "the size and the age of a chunk must be more than 0".to_owned()
            }
            Self { keep: Some(0 | 1), .. } => {
                "`keep` must be at least 2: the current chunk, and a finished one".to_owned()
            }
            _ => return Ok(()),
        };
        Err(SpecError::invalid(wrong))
    }

    /// Checks that a dt file with packets of this size fits its maximum size, and that a stream can send one in time.
    pub(super) fn check_room(&self, packet_size: usize) -> Result<(), SpecError> {
        self.stream.as_ref().map_or(Ok(()), |stream| stream.check_bandwidth(packet_size))?;
        let size = (packet_size as u64).saturating_mul(self.dt_slots().into());
        if self.kind != "dt" || size <= self.max_size {
            return Ok(());
        }
        let (slots, most) = (self.dt_slots(), self.max_size);
        Err(SpecError::invalid(format!(
            "a dt file of {slots} packets of {packet_size} bytes exceeds the maximum of {most} bytes (`max_size`); give it fewer slots, \
             give the threads smaller rings, or raise `max_size`"
        )))
    }

    /// Returns the keys that are set and valid for some kinds only, with these kinds.
    fn keys(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let keys: [(bool, &str, &[&str]); 15] = [
            (self.name.is_some(), "name", &[OBJECT]),
            (self.path != Path::new(""), "path", &["ctf", "dt", "text"]),
            (self.slots.is_some(), "slots", &["dt"]),
            (self.address.is_some(), "address", &["udp"]),
            (self.port.is_some(), "port", &["udp"]),
            (self.limit.is_some(), "limit", &["udp"]),
            (self.drop.is_some(), "drop", &["udp"]),
            (!self.allow.is_empty(), "allow", &["udp"]),
            (self.rate.is_some(), "rate", &["udp"]),
            (self.pace.is_some(), "pace", &["udp"]),
            (self.rotate_size.is_some(), "rotate_size", &["ctf"]),
            (self.rotate_every_ms.is_some(), "rotate_every_ms", &["ctf"]),
            (self.keep.is_some(), "keep", &["ctf"]),
            (self.existing.is_some(), "existing", &["ctf"]),
            (self.stream.is_some(), "stream", &["stream"]),
        ];
        keys.into_iter().filter_map(|(is_there, key, kinds)| is_there.then_some((key, kinds)))
    }

    /// Returns its numbers that may exceed 63 bits.
    pub(super) fn numbers(&self) -> [(&'static str, u64); 6] {
        [
            ("max_size", self.max_size),
            ("limit", self.limit.unwrap_or(0)),
            ("rate", self.rate.unwrap_or(0)),
            ("max_bandwidth", self.stream.as_ref().and_then(|stream| stream.max_bandwidth).unwrap_or(0)),
            ("rotate_size", self.rotate_size.unwrap_or(0)),
            ("rotate_every_ms", self.rotate_every_ms.unwrap_or(0)),
        ]
    }
}

fn is_nothing(path: &Path) -> bool {
    path == Path::new("")
}
