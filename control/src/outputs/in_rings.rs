//! Stands for the sinks of a session that has none: its events stay in the rings.

use tracepoint_core::channel::Packet;
use tracepoint_sinks::{Sink, SinkError, StreamInfo};

/// Takes no packet; it exists so that the session has an account.
#[derive(Debug)]
pub(crate) struct InRings;

impl Sink for InRings {
    fn name(&self) -> String {
        "the rings".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
