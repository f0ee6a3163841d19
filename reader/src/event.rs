//! A decoded event, and the stream it came from.

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
    /// Which instance of the class it is, if its packets say so.
    pub instance: Option<u64>,
    /// The file that its packets are in (the first, where there are several); `packet` for a packet in memory.
    pub file: PathBuf,
}

impl Stream {
    /// Its clock; `None` where neither its packets nor its events have times.
    pub fn clock(&self) -> Option<&Clock> {
        self.metadata.clock_of(&self.class)
    }

    /// [`nanoseconds`](Self::nanoseconds); `None` if 64 bits do not have the time.
    pub(crate) fn checked_nanoseconds(&self, cycles: u64) -> Option<i64> {
        self.clock().map_or(Some(0), |clock| clock.checked_nanoseconds(cycles))
    }

    /// Nanoseconds since the epoch of a value of the stream's clock, clamped to 64 bits; 0 where it has no clock.
    pub fn nanoseconds(&self, cycles: u64) -> i64 {
        self.metadata.nanoseconds(&self.class, cycles)
    }
}

/// One event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// When it was recorded, in nanoseconds since the epoch; 0 where the stream has no [clock](Stream::clock), which is shown as no time.
    pub time_ns: i64,
    /// The same as the clock counted it.
    pub cycles: u64,
    /// The stream it is in.
    pub stream: Arc<Stream>,
    /// Its kind.
    pub class: Arc<EventClass>,
    /// The context of its packet.
    pub packet_context: Option<Arc<StructValue>>,
    /// The context that every event of the stream class has.
    pub stream_context: Option<StructValue>,
    /// The context of this kind of event.
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

    /// The name of its log level, such as `Info`; `None` for one that only another tracer has.
    pub fn level_name(&self) -> Option<&'static str> {
        let level = usize::try_from(self.loglevel()?).ok()?;
        Level::ALL.get(level).map(|level| level.name())
    }
}
