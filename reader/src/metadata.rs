//! The metadata of a trace: its streams and events, and the layout of its bytes.

mod block;
mod build;
pub(crate) mod checksum;
mod declarations;
mod implied_clock;
mod module;
mod resolve;
mod scalar;
mod specifier;
mod text;
mod tokens;
pub mod types;

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::ReadError;
use checksum::MetadataChecksum;
pub use checksum::with_checksum;
pub use module::Module;
use types::{ByteOrder, StructType};

/// Maximum size of metadata, in bytes.
pub const MAX_METADATA: usize = 64 << 20;

/// A clock.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Clock {
    /// Its name.
    pub name: String,
    /// Identifies it across traces; the boot id for `CLOCK_MONOTONIC`.
    pub uuid: Option<[u8; 16]>,
    /// Its description.
    pub description: String,
    /// Cycles per second, never 0.
    pub frequency: u64,
    /// Its precision, in cycles.
    pub precision: u64,
    /// Distance of its zero from the epoch: whole seconds, to which `offset_cycles` is added.
    pub offset_seconds: i128,
    /// Distance of its zero from the epoch, in cycles.
    pub offset_cycles: i128,
}

impl Clock {
    /// Converts to nanoseconds since the epoch, rounded down and clamped to 64 bits.
    pub fn nanoseconds(&self, cycles: u64) -> i64 {
        self.exact_nanoseconds(cycles).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// The same; `None` if the time exceeds 64 bits, which hold the years 1678 to 2261.
    pub(crate) fn checked_nanoseconds(&self, cycles: u64) -> Option<i64> {
        i64::try_from(self.exact_nanoseconds(cycles)).ok()
    }

    fn exact_nanoseconds(&self, cycles: u64) -> i128 {
        let cycles = i128::from(cycles) + self.offset_cycles;
        let frequency = i128::from(self.frequency);
        let part = if frequency == 1_000_000_000 {
            cycles
        } else {
            cycles.saturating_mul(1_000_000_000).div_euclid(frequency)
        };
        self.offset_seconds.saturating_mul(1_000_000_000).saturating_add(part)
    }
}

/// A value in the trace's environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EnvValue {
    /// A number; within the range of 64-bit numbers, signed or unsigned.
    Integer(i128),
    /// A text.
    String(String),
}

/// A kind of event.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EventClass {
    /// Its id within the stream class.
    pub id: u64,
    /// The stream class (channel) it belongs to.
    pub stream_id: u64,
    /// Its name, `provider:event`.
    pub name: String,
    /// Its level: 0 (emergency) to 14 (debug).
    pub loglevel: Option<i64>,
    /// Attributes beyond these, such as `model.emf.uri`, as text.
    pub attributes: Vec<(String, String)>,
    /// Type of the event's own context.
    pub context: Option<Arc<StructType>>,
    /// Type of its fields.
    pub fields: Option<Arc<StructType>>,
}

/// A kind of stream: a channel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamClass {
    /// Its id within the trace.
    pub id: u64,
    /// Type of the context of each packet.
    pub packet_context: Option<Arc<StructType>>,
    /// Type of the header of each event.
    pub event_header: Option<Arc<StructType>>,
    /// Type of the context that each event has.
    pub event_context: Option<Arc<StructType>>,
    /// Its events, by id.
    pub events: BTreeMap<u64, Arc<EventClass>>,
    /// The clock of its times, as an index into [`Metadata::clocks`].
    pub clock: Option<usize>,
    /// Data that readers derive from the class, once for all of its streams. Its type belongs to the readers: the metadata does not depend on them.
    pub(crate) derived: OnceLock<Arc<dyn DerivedData>>,
}

/// See [`StreamClass::derived`].
pub(crate) trait DerivedData: Any + Debug + Send + Sync + UnwindSafe + RefUnwindSafe {}

#[derive(Clone, Debug)]
struct Body {
    uuid: Option<[u8; 16]>,
    order: ByteOrder,
    packet_header: Option<Arc<StructType>>,
    env: Vec<(String, EnvValue)>,
    clocks: Vec<Clock>,
    streams: BTreeMap<u64, Arc<StreamClass>>,
    shared_slots: usize,
    event_slots: usize,
    checked: MetadataChecksum,
}

/// The metadata of one trace. A clone shares the contents.
#[derive(Clone, Debug)]
pub struct Metadata {
    body: Arc<Body>,
}

impl Metadata {
    /// Reads metadata, plain or wrapped in packets.
    ///
    /// # Errors
    /// [`ReadError::Metadata`] if it is longer than [`MAX_METADATA`], not well formed, or refers to an undeclared name.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let error = |line, offset: usize, reason| ReadError::Metadata {
            path: PathBuf::from("metadata"),
            line,
            offset: offset as u64,
            reason,
        };
        if bytes.len() > MAX_METADATA {
            return Err(error(0, MAX_METADATA, format!("longer than {MAX_METADATA} bytes")));
        }
        let text = Self::text(bytes)?;
        let text = String::from_utf8_lossy(&text);
        build::build(&text).map_err(|cause| {
            let before = &text.as_bytes()[..cause.offset.min(text.len())];
            let line = before.split(|b| *b == b'\n').count() as u64;
            error(line, cause.offset, cause.reason)
        })
    }

    /// The text of metadata, plain or wrapped in packets.
    pub(crate) fn text(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
        text::unwrap(bytes).map_err(|bad| ReadError::Metadata {
            path: PathBuf::from("metadata"),
            line: 0,
            offset: bad.offset as u64,
            reason: bad.reason,
        })
    }

    /// Reads a metadata file.
    ///
    /// # Errors
    /// [`ReadError::Io`] if the file cannot be read; else as [`Metadata::parse`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let bytes = crate::source::read_bounded(path, MAX_METADATA)?;
        Self::parse(&bytes).map_err(|error| error.in_file(path))
    }

    /// True if all of it is covered by checksums. Metadata of an older version, or of another tracer, has none.
    pub fn is_checked(&self) -> bool {
        self.body.checked != MetadataChecksum::Unknown
    }

    /// The reason if it fails its checksums. Its declarations may then be wrong.
    pub fn damage(&self) -> Option<&str> {
        match &self.body.checked {
            MetadataChecksum::Wrong(reason) => Some(reason),
            MetadataChecksum::Unknown | MetadataChecksum::Good => None,
        }
    }

    /// Identifies the trace.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        self.body.uuid
    }

    /// The byte order of types that do not declare one.
    pub fn byte_order(&self) -> ByteOrder {
        self.body.order
    }

    /// Type of the header of each packet.
    pub fn packet_header(&self) -> Option<&Arc<StructType>> {
        self.body.packet_header.as_ref()
    }

    /// The environment, in the order of the text.
    pub fn env(&self) -> &[(String, EnvValue)] {
        &self.body.env
    }

    /// One value of the environment.
    pub fn env_value(&self, name: &str) -> Option<&EnvValue> {
        self.body.env.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The modules in the environment, which describe code mapped in the process: `START-END OFFSET BUILD-ID PATH` each, numbers in base 16, `-` for
    /// a file without a build id. Only traces with call stacks have them. [`Module::parse`] parses an entry.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        let named = self.env().iter().filter(|(name, _)| name.starts_with("module_"));
        named.filter_map(|(_, value)| if let EnvValue::String(text) = value { Some(text.as_str()) } else { None })
    }

    /// The same metadata, with the offset of clocks that count nanoseconds set to `offset` nanoseconds from the epoch.
    pub(crate) fn with_offset(&self, offset: i64) -> Self {
        let mut body = Body::clone(&self.body);
        for clock in body.clocks.iter_mut().filter(|clock| clock.frequency == 1_000_000_000) {
            (clock.offset_seconds, clock.offset_cycles) = (0, i128::from(offset));
        }
        Self { body: Arc::new(body) }
    }

    /// True if `other` is a clone of this one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.body, &other.body)
    }

    /// The clocks.
    pub fn clocks(&self) -> &[Clock] {
        &self.body.clocks
    }

    /// The stream classes, by id.
    pub fn streams(&self) -> impl Iterator<Item = &Arc<StreamClass>> {
        self.body.streams.values()
    }

    /// The stream class with this id.
    pub fn stream(&self, id: u64) -> Option<&Arc<StreamClass>> {
        self.body.streams.get(&id)
    }

    /// The clock of a stream class's times.
    pub(crate) fn clock_of(&self, class: &StreamClass) -> Option<&Clock> {
        class.clock.and_then(|index| self.clocks().get(index))
    }

    /// Converts a time of a stream class's clock to nanoseconds since the epoch; 0 if it has no clock.
    pub(crate) fn nanoseconds(&self, class: &StreamClass, cycles: u64) -> i64 {
        self.clock_of(class).map_or(0, |clock| clock.nanoseconds(cycles))
    }

    pub(crate) fn slots(&self) -> (usize, usize) {
        (self.body.shared_slots, self.body.event_slots)
    }
}
