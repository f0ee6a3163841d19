//! The sink that serves a session's events.

use super::options::UdpOptions;
use super::server::{Packet, UdpServer};
use super::stats::UdpWatch;
use crate::account::Account;
use crate::description::{NewEvents, TraceStart};
use crate::error::SinkError;
use crate::sink::{Sink, SinkExtension, StreamInfo};
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

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        self.server.describe(start.metadata)?;
        self.server.start(Box::new(clock::now))
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        if new.metadata.is_empty() { Ok(()) } else { self.server.describe(new.metadata) }
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

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for UdpServerSink {
    fn adjust_account(&self, account: &mut Account) {
        for channel in &mut account.channels {
            for stream in &mut channel.streams {
                let lost = self.server.lost(StreamId { class: channel.id as u32, instance: stream.instance });
                let sum: u64 = lost.values().sum();
                stream.written = stream.written.saturating_sub(sum);
                stream.sink += sum;
                stream.sink_lost = lost.into_iter().map(|(reason, events)| (reason.to_owned(), events)).collect();
            }
        }
    }
}
