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
    /// The name of a file that holds the packets of this stream.
    pub(crate) fn file_name(&self) -> String {
        format!("{}_{}", self.channel, self.id.instance)
    }
}

/// Takes whole packets.
///
/// ```text
///   begin ──▶ describe ──▶ packet* ──▶ finish
///                ▲────────────┘ more events, while packets come
/// ```
///
/// A sink needs a [`name`](Self::name) and a place for [packets](Self::packet); the other methods do nothing unless they are written.
///
/// One thread calls the sink at a time, and that thread's events are never traced. A sink may block: meanwhile rings and overflow fill up, and
/// the events that they cannot take are counted as lost. A sink that panics is not called again; the packets that follow are counted
/// as lost by the sink.
#[expect(unused_variables, reason = "parameters of methods that do nothing by default")]
pub trait Sink: Send {
    /// The name of the sink in messages, such as `CTF in /tmp/trace`.
    fn name(&self) -> String;

    /// The trace begins. Called once, first.
    ///
    /// # Errors
    ///
    /// If the sink cannot write. It is not added to the session then; a session that is being started does not start.
    fn begin(&mut self, trace: &TraceStart<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Packets may contain these events from now on. Called before the events are switched on, and again when more are.
    ///
    /// # Errors
    ///
    /// If the sink cannot write the description. The events are not switched on then.
    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    /// A packet. The packets of a stream come in order; the first and the last of each stream hold no record.
    ///
    /// `events_before` of a stream's first packet is 0, unless the sink was added while the session ran: then it is the number of
    /// records that came before.
    ///
    /// # Errors
    ///
    /// If the sink took no part of the packet. The packet is counted as lost by the sink, and the next one follows.
    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError>;

    /// The trace ends, or the sink is removed. Called once, last, with the final account.
    ///
    /// # Errors
    ///
    /// If something could not be written.
    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        Ok(())
    }

    /// The extension for sinks of the tracepoint crates.
    #[doc(hidden)]
    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        None
    }
}
