//! A destination for the packets of a session: one `[[sink]]` of `session.toml`.
//!
//! The key `kind` names the kind, and each kind has the keys of its type here: a key of another kind is refused.

mod file;
mod network;
mod object;

pub use file::{CtfSinkSpec, DtSinkSpec, ExistingTraces, TextSinkSpec};
pub use network::{DropPolicy, StreamSinkSpec, UdpSinkSpec};
pub use object::ObjectSinkSpec;

use super::SpecError;
use super::stream::StreamSpec;
use crate::table::{self, Table, TableError, Value};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tracepoint_sinks::Sink;

/// The maximum size of the output of a sink by default, in bytes.
const fn default_size() -> u64 {
    1 << 30
}

/// The kinds of sinks that can be made from a description.
const KINDS: [&str; 5] = ["ctf", "dt", "stream", "text", "udp"];

/// A destination for the packets of a session in each process.
///
/// Each kind has a type with its own settings, which converts into a `SinkSpec`.
///
/// ```
/// use tracepoint_session_spec::SinkSpec;
///
/// let chunks = SinkSpec::ctf("/var/tmp/shop").rotate_size(64 << 20).keep(10);
/// let newest = SinkSpec::dt("/var/tmp/shop.dt").slots(1024);
/// let live = SinkSpec::udp(([127, 0, 0, 1], 0).into());
/// let all: [SinkSpec; 3] = [chunks.into(), newest.into(), live.into()];
/// ```
///
/// A setting of another kind does not compile:
///
/// ```compile_fail
/// tracepoint_session_spec::SinkSpec::text("/var/tmp/shop.txt").slots(1024);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum SinkSpec {
    /// A CTF directory for each process.
    Ctf(CtfSinkSpec),
    /// A circular file with the newest packets for each process.
    Dt(DtSinkSpec),
    /// Lines of text.
    Text(TextSinkSpec),
    /// A UDP trace server in each process.
    Udp(UdpSinkSpec),
    /// A stream to a collector, relay or broker from each process.
    Stream(StreamSinkSpec),
    /// An object that the program passed to its session: it cannot be made from a description.
    Object(ObjectSinkSpec),
}

impl SinkSpec {
    /// A CTF directory for each process, in the directory at the absolute path `path`; at most 1 GiB each.
    pub fn ctf(path: impl Into<PathBuf>) -> CtfSinkSpec {
        CtfSinkSpec::new(path.into())
    }

    /// A circular file with the newest 256 packets for each process, at the absolute path `path`; at most 1 GiB each.
    pub fn dt(path: impl Into<PathBuf>) -> DtSinkSpec {
        DtSinkSpec::new(path.into())
    }

    /// Lines of text in a file at the absolute path `path`; at most 1 GiB for each process.
    pub fn text(path: impl Into<PathBuf>) -> TextSinkSpec {
        TextSinkSpec::new(Some(path.into()))
    }

    /// Lines of text on the standard error of each process.
    pub const fn standard_error() -> TextSinkSpec {
        TextSinkSpec::new(None)
    }

    /// A UDP trace server in each process. Only one process can use a port other than 0.
    pub const fn udp(address: SocketAddr) -> UdpSinkSpec {
        UdpSinkSpec::new(address)
    }

    /// Streams the packets of each process to a collector or a relay.
    pub const fn stream(stream: StreamSpec) -> StreamSinkSpec {
        StreamSinkSpec::new(stream)
    }

    /// The description of a sink object.
    #[doc(hidden)]
    pub fn of_object(sink: &mut dyn Sink) -> Self {
        let path = sink.extension().and_then(|sink| sink.output()).map(|output| output.path);
        Self::Object(ObjectSinkSpec::new(sink.name(), path))
    }

    /// The kind, as in files: `ctf`, `dt`, `text`, `udp`, `stream` or `object`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Ctf(_) => "ctf",
            Self::Dt(_) => "dt",
            Self::Text(_) => "text",
            Self::Udp(_) => "udp",
            Self::Stream(_) => "stream",
            Self::Object(_) => "object",
        }
    }

    /// Maximum number of bytes that a process writes, if it is a file.
    pub const fn max_size(&self) -> u64 {
        let (Self::Ctf(CtfSinkSpec { max_size, .. })
        | Self::Dt(DtSinkSpec { max_size, .. })
        | Self::Text(TextSinkSpec { max_size, .. })
        | Self::Udp(UdpSinkSpec { max_size, .. })
        | Self::Stream(StreamSinkSpec { max_size, .. })
        | Self::Object(ObjectSinkSpec { max_size, .. })) = self;
        *max_size
    }

    /// Its path, if it has one: it is a file or directory, or an object that writes to one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Ctf(sink) => Some(&sink.path),
            Self::Dt(sink) => Some(&sink.path),
            Self::Text(sink) => sink.path.as_deref(),
            Self::Object(sink) => sink.path.as_deref(),
            Self::Udp(_) | Self::Stream(_) => None,
        }
    }

    /// The settings of its stream, if it streams.
    pub const fn stream_settings(&self) -> Option<&StreamSpec> {
        if let Self::Stream(sink) = self { Some(&sink.stream) } else { None }
    }

    /// Returns whether it describes a sink object, which cannot be made from the description.
    pub(crate) const fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Reads an entry of the file.
    pub(super) fn read(mut table: Table) -> Result<Self, SpecError> {
        let Some(Value::String(kind)) = table.remove("kind") else {
            return Err(SpecError::malformed("a sink has no `kind`"));
        };
        if !KINDS.contains(&kind.as_str()) && kind != "object" {
            let known = KINDS.join(", ");
            return Err(SpecError::invalid(format!("unknown kind of sink `{kind}`; there are {known}")));
        }
        for (key, value) in &table {
            let kinds: Vec<_> = KINDS.into_iter().filter(|kind| has_key(kind, key, value)).collect();
            if !kinds.is_empty() && !kinds.contains(&kind.as_str()) && !has_key(&kind, key, value) {
                let kinds = kinds.join(" and ");
                return Err(SpecError::invalid(format!("`{key}` is for sinks of the kind {kinds}, not for `{kind}`")));
            }
        }
        if kind == "stream" && !table.contains_key("stream") {
            return Err(SpecError::invalid(
                "a sink of the kind `stream` needs a table `stream` with `to`, the address of the peer",
            ));
        }
        read_kind(&kind, table).map_err(|error| SpecError::malformed(format!("sink of the kind `{kind}`: {error}")))
    }

    /// Returns whether it has the same kind and destination as `other`.
    pub(super) fn is_at_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp(own), Self::Udp(other)) => own.socket_address() == other.socket_address(),
            (Self::Stream(own), Self::Stream(other)) => own.stream.to == other.stream.to,
            (Self::Object(own), Self::Object(other)) => (&own.name, &own.path) == (&other.name, &other.path),
            _ => self.kind() == other.kind() && self.path() == other.path(),
        }
    }

    /// Checks the description.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if let Self::Object(sink) = self {
            return Err(SpecError::invalid(format!(
                "the sink `{}` is an object of a program, and cannot be made from its description",
                sink.name.as_deref().unwrap_or_default()
            )));
        }
        if let Some(path) = self.path().filter(|path| !path.is_absolute() || path.to_str().is_none()) {
            let path = path.display();
            return Err(SpecError::invalid(format!("the path of a sink must be absolute and UTF-8, unlike `{path}`")));
        }
        match self {
            Self::Ctf(sink) => sink.check(),
            Self::Dt(sink) => sink.check(),
            Self::Text(_) | Self::Object(_) => Ok(()),
            Self::Udp(sink) => sink.check(),
            Self::Stream(sink) => sink.stream.check(),
        }
    }

    /// Checks that a dt file with packets of this size fits its maximum size, and that a stream can send one in time.
    pub(super) fn check_room(&self, packet_size: usize) -> Result<(), SpecError> {
        match self {
            Self::Dt(sink) => sink.check_room(packet_size),
            Self::Stream(sink) => sink.stream.check_bandwidth(packet_size),
            _ => Ok(()),
        }
    }

    /// Returns its numbers that may exceed 63 bits.
    pub(super) fn numbers(&self) -> [(&'static str, u64); 3] {
        let (first, second) = match self {
            Self::Ctf(sink) => (("rotate_size", sink.rotate_size), ("rotate_every_ms", sink.rotate_every_ms)),
            Self::Udp(sink) => (("limit", sink.limit), ("rate", sink.rate)),
            Self::Stream(sink) => (("max_bandwidth", sink.stream.max_bandwidth), ("", None)),
            _ => (("", None), ("", None)),
        };
        let number = |(key, number): (&'static str, Option<u64>)| (key, number.unwrap_or(0));
        [("max_size", self.max_size()), number(first), number(second)]
    }
}

/// Converts the settings of each kind.
macro_rules! from_settings {
    ($($kind:ident($settings:ty)),*) => {$(
        impl From<$settings> for SinkSpec {
            fn from(sink: $settings) -> Self {
                Self::$kind(sink)
            }
        }
    )*};
}

from_settings!(Ctf(CtfSinkSpec), Dt(DtSinkSpec), Text(TextSinkSpec), Udp(UdpSinkSpec), Stream(StreamSinkSpec));

/// Reads the settings of a kind.
fn read_kind(kind: &str, settings: Table) -> Result<SinkSpec, TableError> {
    match kind {
        "ctf" => table::read(settings).map(SinkSpec::Ctf),
        "dt" => table::read(settings).map(SinkSpec::Dt),
        "text" => table::read(settings).map(SinkSpec::Text),
        "udp" => table::read(settings).map(SinkSpec::Udp),
        "stream" => table::read(settings).map(SinkSpec::Stream),
        _ => table::read(settings).map(SinkSpec::Object),
    }
}

/// Returns whether a kind has this key.
fn has_key(kind: &str, key: &str, value: &Value) -> bool {
    let mut alone = Table::new();
    alone.insert(key.to_owned(), value.clone());
    !read_kind(kind, alone).is_err_and(|error| error.message.starts_with("unknown field"))
}
