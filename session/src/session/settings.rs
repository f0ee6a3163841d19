//! Everything that the start of a recording needs except its events.

use super::rings::RingPlace;
use std::time::Duration;
use tracepoint_core::clock::Clock;
use tracepoint_session_spec::{SessionSpec, SinkSource};

/// The description of a session, and what is specific to a process: the location of the rings, the clock, sinks that are objects.
#[derive(Debug)]
pub(crate) struct RecordingSettings {
    pub(crate) name: String,
    /// Without its sinks, which are in `sinks`.
    pub(crate) spec: SessionSpec,
    pub(crate) sinks: Vec<SinkSource>,
    pub(crate) place: RingPlace,
    pub(crate) clock: Option<Clock>,
    /// Maximum time that the caller waits for sinks while the session runs; `None` for no limit.
    pub(crate) sink_timeout: Option<Duration>,
    /// Initial number of rings of the default channel, unless its description sets it.
    pub(crate) rings_at_first: Option<usize>,
    /// Name of the process's traces in a directory with several.
    pub(crate) trace_name: Option<String>,
}

impl RecordingSettings {
    pub(crate) fn new(name: String, mut spec: SessionSpec) -> Self {
        let sinks = std::mem::take(&mut spec.sinks).into_iter().map(SinkSource::from).collect();
        let place = RingPlace::default();
        Self { name, spec, sinks, place, clock: None, sink_timeout: None, rings_at_first: None, trace_name: None }
    }

    /// Returns the description. A sink that is an object appears in it by its name.
    pub(super) fn spec(&self) -> SessionSpec {
        let mut spec = self.spec.clone();
        spec.sinks = self.sinks.iter().map(SinkSource::spec).collect();
        spec
    }
}
