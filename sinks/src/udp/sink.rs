//! The sink that serves a session's events.

use super::options::UdpOptions;
use super::server::{Packet, UdpServer};
use super::stats::UdpWatch;
use crate::account::Account;
use crate::ctf::MetadataText;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tracepoint_core::channel::{self, StreamId};
use tracepoint_core::clock;

/// Serves the events of a session over UDP, to one client at a time: see `docs/format-udp.md`.
///
/// Events wait for a client within a limit, in memory; what is more is dropped, and stands in the account. The sink never keeps
/// the session waiting while it runs. When the session ends, it sends what is left to the client that it serves, within the time that
/// [`UdpOptions::flush`] says; without a client it ends at once, unless [`UdpOptions::linger`] says more.
///
/// ```no_run
/// use tracepoint_sinks::udp::{UdpOptions, UdpServerSink};
///
/// let sink = UdpServerSink::bind(UdpOptions::default())?;
/// println!("tracectl read --server-port {}", sink.address().port());
/// # Ok::<(), tracepoint_sinks::SinkError>(())
/// ```
#[derive(Debug)]
pub struct UdpServerSink {
    server: UdpServer,
}

impl UdpServerSink {
    /// Takes the port. Clients are answered when the session starts.
    ///
    /// # Errors
    ///
    /// As [`UdpServer::bind`].
    pub fn bind(options: UdpOptions) -> Result<Self, SinkError> {
        Ok(Self { server: UdpServer::bind(options)? })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Tells how it fares, while a session has the sink.
    pub fn watch(&self) -> UdpWatch {
        self.server.watch()
    }
}

impl Sink for UdpServerSink {
    fn name(&self) -> String {
        format!("UDP server on {}", self.server.address())
    }

    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.begin_with_text(trace, channels, MetadataText::begin(trace, channels).as_str())
    }

    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.server.describe(MetadataText::events(events).as_str())
    }

    fn add_channel(&mut self, trace: &TraceInfo, channel: &ChannelDescription) -> Result<(), SinkError> {
        self.server.describe(MetadataText::further_channel(trace, channel).as_str())
    }

    fn begin_with_text(&mut self, _: &TraceInfo, _: &[ChannelDescription], text: &str) -> Result<(), SinkError> {
        self.server.describe(text)?;
        self.server.start(Box::new(clock::now))
    }

    fn describe_with_text(&mut self, _: &[EventDescription], text: &str) -> Result<(), SinkError> {
        if text.is_empty() { Ok(()) } else { self.server.describe(text) }
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &channel::Packet<'_>) -> Result<(), SinkError> {
        let events = packet.events_after - packet.events_before;
        self.server.push(Packet { stream: stream.id, bytes: packet.bytes.to_vec(), events });
        Ok(())
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.server.end(Some(account.clone()));
        self.server.wait();
        Ok(())
    }

    fn lost(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        self.server.lost(stream)
    }
}
