//! Stands for the sinks of a session that has none: its events stay in the rings.

use tracepoint_core::channel::Packet;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::{ChannelDescription, EventDescription, Sink, SinkError, StreamInfo, TraceInfo};

/// Takes no packet; it exists so that the session has an account.
#[derive(Debug)]
pub(crate) struct InRings;

impl Sink for InRings {
    fn name(&self) -> String {
        "the rings".to_owned()
    }

    fn begin(&mut self, _: &TraceInfo, _: &[ChannelDescription]) -> Result<(), SinkError> {
        Ok(())
    }

    fn add_channel(&mut self, _: &TraceInfo, _: &ChannelDescription) -> Result<(), SinkError> {
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
