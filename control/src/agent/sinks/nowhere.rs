//! No sink: the session keeps its events in the rings.

use tracepoint_core::channel::Packet;
use tracepoint_sinks::{Sink, SinkError, StreamInfo};

/// Takes nothing along.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn name(&self) -> String {
        "the rings".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
