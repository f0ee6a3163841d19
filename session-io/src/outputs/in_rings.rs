//! The placeholder sink of a session without sinks: its events stay in the rings.

use tracepoint_core::channel::Packet;
use tracepoint_sinks::{Sink, SinkError, SinkExtension, StreamInfo};

/// Ignores all packets; it exists because the session's account belongs to a sink.
#[derive(Debug)]
pub struct InRings;

impl Sink for InRings {
    fn name(&self) -> String {
        "the rings".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for InRings {
    fn keeps_packets(&self) -> bool {
        false
    }
}
