//! No sink: the session keeps its events in the rings.

use tracepoint_core::channel::Packet;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::{ChannelDescription, EventDescription, Sink, SinkError, StreamInfo, TraceInfo};

/// Takes nothing along.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn name(&self) -> String {
        "the rings".to_owned()
    }

    fn begin(&mut self, _: &TraceInfo, _: &[ChannelDescription]) -> Result<(), SinkError> {
        Ok(())
    }

    fn describe(&mut self, _: &[EventDescription]) -> Result<(), SinkError> {
        Ok(())
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self, _: &Account) -> Result<(), SinkError> {
        Ok(())
    }
}
