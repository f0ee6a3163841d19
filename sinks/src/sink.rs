//! The trait of all sinks.

mod extension;

use crate::account::Account;
use crate::description::{NewEvents, TraceStart};
use crate::error::SinkError;
pub use extension::{Output, Rotation, SinkExtension};
use tracepoint_ring::channel::{Packet, StreamId};

/// One stream: the packets of one ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its stream class and instance number.
    pub id: StreamId,
    /// The name of its channel.
    pub channel: String,
}

impl StreamInfo {
    /// Returns the name of a file for the packets of this stream.
    pub(crate) fn file_name(&self) -> String {
        format!("{}_{}", self.channel, self.id.instance)
    }
}

/// Takes complete packets.
///
/// ```text
///   begin ──▶ describe ──▶ packet* ──▶ finish
///                ▲────────────┘ more events, while packets come
/// ```
///
/// A sink needs a [`name`](Self::name) and a method for [packets](Self::packet); the other methods do nothing by default.
///
/// One thread calls the sink at a time, and that thread's events are never traced. A sink may block: meanwhile rings and overflow fill up, and events
/// that do not fit are counted as lost. A sink that panics is not called again; later packets are counted as lost by the sink.
#[expect(unused_variables, reason = "parameters of methods that do nothing by default")]
pub trait Sink: Send {
    /// Returns the name of the sink in messages, such as `CTF in /tmp/trace`.
    fn name(&self) -> String;

    /// Begins the trace. Called once, first.
    ///
    /// # Errors
    ///
    /// If the sink cannot write. It is then not added to the session; a session that is being started does not start.
    fn begin(&mut self, trace: &TraceStart<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Announces events that later packets may contain. Called before the events are enabled, and again when more are.
    ///
    /// # Errors
    ///
    /// If the sink cannot write the description. The events are then not enabled.
    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Takes a packet. The packets of a stream arrive in order; the first and the last of each stream are empty.
    ///
    /// `events_before` of a stream's first packet is 0, unless the sink was added while the session ran: then it is the number of earlier records.
    ///
    /// # Errors
    ///
    /// If the sink took no part of the packet. The packet is counted as lost by the sink, and the next one follows.
    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError>;

    /// Ends the trace, or the sink's part of it. Called once, last, with the final account.
    ///
    /// # Errors
    ///
    /// If something could not be written.
    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        Ok(())
    }

    /// Returns the extension for sinks of the tracepoint crates.
    #[doc(hidden)]
    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        None
    }
}
