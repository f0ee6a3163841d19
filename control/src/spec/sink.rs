//! Where the packets of a session go: one `[[sink]]` of `session.toml`.

use super::SpecError;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_sinks::Sink;

/// The kinds of sinks that are known.
const KINDS: [&str; 4] = ["ctf", "dt", "text", "udp"];
/// The kind of a sink that a program made itself, as an object: a description of it cannot be made into a sink again.
const OBJECT: &str = "object";
/// How many packets a dt file has unless it is said.
const SLOTS: u32 = 256;

/// Where the packets of a session go, in each process.
///
/// ```
/// use tracepoint_control::SinkSpec;
///
/// let chunks = SinkSpec::ctf("/var/tmp/shop").rotate_size(64 << 20).keep(10);
/// let newest = SinkSpec::dt("/var/tmp/shop.dt").slots(1024);
/// let live = SinkSpec::udp(([127, 0, 0, 1], 0).into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SinkSpec {
    /// In which format: `ctf`, `dt`, `text` or `udp`. `object` describes a sink that the program gave to the session itself.
    pub kind: String,
    /// Of an `object`, what the sink calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The absolute path. Of `ctf` a directory, in which each process makes one of its own. Of `dt` and `text` a file: of several processes
    /// one has it, and the others files beside it; or a directory, in which each process makes a file. `text` without one goes to the
    /// standard error of each process.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub path: PathBuf,
    /// How many bytes a process writes at most; what is beyond is lost, and counted. Of a dt file, how large it may be.
    #[serde(default = "SinkSpec::default_size")]
    pub max_size: u64,
    /// How many packets a dt file holds: 256 unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Where a UDP server listens: 127.0.0.1 unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// At which port, which one process has; 0, and without it: at any that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How many bytes of events wait for a UDP client, in each process: 64 MiB unless it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Which of them are dropped if there are more: `oldest`, unless it is said, or `newest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// A CTF trace goes on in another chunk when so many bytes are in the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_size: Option<u64>,
    /// And when the present one is so old, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate_every_ms: Option<u64>,
    /// How many chunks stay in each process: the newest, and no more of them than `max_size` has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

impl SinkSpec {
    /// A CTF directory for each process, in the directory at the absolute path `path`; 1 GiB for each.
    pub fn ctf(path: impl Into<PathBuf>) -> Self {
        Self::of("ctf", path.into())
    }

    /// A circular file of the newest 256 packets for each process, at the absolute path `path`; no larger than 1 GiB.
    pub fn dt(path: impl Into<PathBuf>) -> Self {
        Self::of("dt", path.into())
    }

    /// Lines of text, in a file at the absolute path `path`; 1 GiB for each process.
    pub fn text(path: impl Into<PathBuf>) -> Self {
        Self::of("text", path.into())
    }

    /// Lines of text on the standard error of each process.
    pub fn standard_error() -> Self {
        Self::of("text", PathBuf::new())
    }

    /// A UDP trace server in each process. Of several processes only one has the port, if it is not 0.
    pub fn udp(address: SocketAddr) -> Self {
        let mut sink = Self::of("udp", PathBuf::new());
        (sink.address, sink.port) = (Some(address.ip()), Some(address.port()));
        sink
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
            rotate_size: None,
            rotate_every_ms: None,
            keep: None,
        }
    }

    /// The description of a sink object.
    pub(crate) fn of_object(sink: &mut dyn Sink) -> Self {
        let output = sink.extension().and_then(|sink| sink.output());
        let path = output.map(|output| output.path).unwrap_or_default();
        Self { name: Some(sink.name()), ..Self::of(OBJECT, path) }
    }

    /// Whether it describes a sink object, which cannot be made from the description.
    pub(crate) fn is_object(&self) -> bool {
        self.kind == OBJECT
    }

    /// At most so many bytes, in each process; the events of further packets are lost, and counted. 1 GiB unless it is given.
    #[must_use]
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    /// Of a dt file: so many packets.
    #[must_use]
    pub const fn slots(mut self, slots: u32) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Of a CTF trace: another chunk when so many bytes are in the present one.
    #[must_use]
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotate_size = Some(bytes);
        self
    }

    /// Of a CTF trace: so many chunks stay, the newest.
    #[must_use]
    pub const fn keep(mut self, chunks: u32) -> Self {
        self.keep = Some(chunks);
        self
    }

    const fn default_size() -> u64 {
        1 << 30
    }

    /// Whether it is of the same kind, and writes to the same place.
    pub(super) fn is_at_same_place(&self, other: &Self) -> bool {
        let place = |sink: &Self| (sink.kind.clone(), sink.name.clone(), sink.path.clone());
        place(self) == place(other) && self.socket_address() == other.socket_address()
    }

    /// Where a UDP server listens.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), self.port.unwrap_or(0))
    }

    /// How many packets a dt file holds.
    pub fn dt_slots(&self) -> u32 {
        self.slots.unwrap_or(SLOTS)
    }

    pub(crate) fn rotate_every(&self) -> Option<Duration> {
        self.rotate_every_ms.map(Duration::from_millis)
    }

    /// Whether it can be.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let kind = self.kind.as_str();
        if self.is_object() {
            let name = self.name.as_deref().unwrap_or_default();
            return Err(SpecError::invalid(format!(
                "the sink `{name}` was made by a program, and cannot be made from its description"
            )));
        }
        if !KINDS.contains(&kind) {
            let known = KINDS.join(", ");
            return Err(SpecError::invalid(format!("a sink of the kind `{kind}` is not known; there are {known}")));
        }
        if let Some((key, kinds)) = self.keys().find(|(_, kinds)| !kinds.contains(&kind)) {
            let kinds = kinds.join(" and ");
            return Err(SpecError::invalid(format!("`{key}` is for sinks of the kind {kinds}, not for `{kind}`")));
        }
        let has_path = self.path != Path::new("");
        let needs_path = matches!(kind, "ctf" | "dt");
        if (needs_path || has_path) && (!self.path.is_absolute() || self.path.to_str().is_none()) {
            let path = self.path.display();
            return Err(SpecError::invalid(format!("the path of a sink is not absolute, or no text: `{path}`")));
        }
        let wrong = match self {
            Self { slots: Some(slots), .. } if *slots == 0 || *slots > i32::MAX as u32 => {
                format!("a dt file has from 1 to {} slots, not {slots}", i32::MAX)
            }
            Self { drop: Some(end), .. } if !matches!(end.as_str(), "oldest" | "newest") => {
                format!("`drop` is `oldest` or `newest`, not `{end}`")
            }
            Self { rotate_size: Some(0), .. } | Self { rotate_every_ms: Some(0), .. } => {
                "a chunk has a size and a time of more than 0".to_owned()
            }
            Self { keep: Some(0 | 1), .. } => {
                "`keep` is 2 at least: the chunk that is written, and one that can be looked at".to_owned()
            }
            _ => return Ok(()),
        };
        Err(SpecError::invalid(wrong))
    }

    /// Whether its bounds leave room for what it is to hold, of packets of so many bytes.
    pub(super) fn check_room(&self, packet_size: usize) -> Result<(), SpecError> {
        let size = (packet_size as u64).saturating_mul(self.dt_slots().into());
        if self.kind != "dt" || size <= self.max_size {
            return Ok(());
        }
        let (slots, most) = (self.dt_slots(), self.max_size);
        Err(SpecError::invalid(format!(
            "a dt file of {slots} packets of {packet_size} bytes is larger than the {most} bytes that are allowed (`max_size`); give it \
             fewer slots, or the threads smaller rings, or allow more"
        )))
    }

    /// The keys that are there and not for all kinds, with the kinds that they are for.
    fn keys(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let keys: [(bool, &str, &[&str]); 10] = [
            (self.name.is_some(), "name", &[OBJECT]),
            (self.path != Path::new(""), "path", &["ctf", "dt", "text"]),
            (self.slots.is_some(), "slots", &["dt"]),
            (self.address.is_some(), "address", &["udp"]),
            (self.port.is_some(), "port", &["udp"]),
            (self.limit.is_some(), "limit", &["udp"]),
            (self.drop.is_some(), "drop", &["udp"]),
            (self.rotate_size.is_some(), "rotate_size", &["ctf"]),
            (self.rotate_every_ms.is_some(), "rotate_every_ms", &["ctf"]),
            (self.keep.is_some(), "keep", &["ctf"]),
        ];
        keys.into_iter().filter_map(|(is_there, key, kinds)| is_there.then_some((key, kinds)))
    }

    /// Its numbers that may need more than 63 bits.
    pub(super) fn numbers(&self) -> [(&'static str, u64); 4] {
        [
            ("max_size", self.max_size),
            ("limit", self.limit.unwrap_or(0)),
            ("rotate_size", self.rotate_size.unwrap_or(0)),
            ("rotate_every_ms", self.rotate_every_ms.unwrap_or(0)),
        ]
    }
}

fn is_nothing(path: &Path) -> bool {
    path == Path::new("")
}
