//! A decoded event, and its stream.

use std::path::PathBuf;
use std::sync::Arc;

use crate::metadata::{Clock, EventClass, Metadata, StreamClass};
use crate::value::StructValue;
use tracepoint_ring::Level;

/// One stream: the packets of one instance (a thread's or a CPU's ring) of a stream class (a channel).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stream {
    /// The metadata of its trace.
    pub metadata: Metadata,
    /// Its class.
    pub class: Arc<StreamClass>,
    /// The instance of the class, if its packets have one.
    pub instance: Option<u64>,
    /// The file with its packets (the first, if there are several); `packet` for a packet in memory.
    pub file: PathBuf,
}

impl Stream {
    /// Its clock; `None` if neither its packets nor its events have times.
    pub fn clock(&self) -> Option<&Clock> {
        self.metadata.clock_of(&self.class)
    }

    /// [`nanoseconds`](Self::nanoseconds); `None` if the time exceeds 64 bits.
    pub(crate) fn checked_nanoseconds(&self, cycles: u64) -> Option<i64> {
        self.clock().map_or(Some(0), |clock| clock.checked_nanoseconds(cycles))
    }

    /// Converts a value of the stream's clock to nanoseconds since the epoch, clamped to 64 bits; 0 if it has no clock.
    pub fn nanoseconds(&self, cycles: u64) -> i64 {
        self.metadata.nanoseconds(&self.class, cycles)
    }
}

/// One event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// The time of recording, in nanoseconds since the epoch; 0 if the stream has no [clock](Stream::clock), which is shown as no time.
    pub time_ns: i64,
    /// The same time in cycles of the clock.
    pub cycles: u64,
    /// Its stream.
    pub stream: Arc<Stream>,
    /// Its kind.
    pub class: Arc<EventClass>,
    /// The context of its packet.
    pub packet_context: Option<Arc<StructValue>>,
    /// The context common to all events of the stream class.
    pub stream_context: Option<StructValue>,
    /// The context specific to this kind of event.
    pub context: Option<StructValue>,
    /// Its fields.
    pub fields: Option<StructValue>,
}

impl Event {
    /// `provider:name`.
    pub fn name(&self) -> &str {
        &self.class.name
    }

    /// The level, 0 (emergency) to 14 (debug), if the metadata has one.
    pub fn loglevel(&self) -> Option<i64> {
        self.class.loglevel
    }

    /// The name of its log level, such as `Info`; `None` if this tracer has no such level.
    pub fn level_name(&self) -> Option<&'static str> {
        let level = usize::try_from(self.loglevel()?).ok()?;
        Level::ALL.get(level).map(|level| level.name())
    }
}
