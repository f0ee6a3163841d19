//! The sink that serves a session's events.

use super::options::UdpOptions;
use super::server::{Packet, UdpServer};
use crate::account::Account;
use crate::accounting;
use crate::description::{NewEvents, TraceStart};
use crate::error::SinkError;
use crate::sink::{Sink, SinkExtension, StreamInfo};
use crate::udp_stats::UdpWatch;
use std::net::SocketAddr;
use tracepoint_ring::channel::{self, StreamId};
use tracepoint_ring::clock;

/// In the account for clients, the reason why records from before the sink was added are missing.
const NOT_HERE: &str = "udp_not_here";

/// Serves the events of a session over UDP, to one client at a time: see `docs/format-udp.md`.
///
/// Events wait for a client in memory, up to a limit. Events beyond it are dropped, and the account counts them. The sink never blocks the session
/// while it runs. When the session ends, the sink sends the rest to the client that it is serving, for at most [`UdpOptions::flush`]. Without a
/// client it ends at once, unless [`UdpOptions::linger`] is set.
///
/// ```no_run
/// use tracepoint_sinks::udp::{UdpOptions, UdpSink};
///
/// let sink = UdpSink::bind(([127, 0, 0, 1], 0))?; // a free port
/// println!("tracectl read --server-port {}", sink.address().port());
/// let small = UdpSink::bind(UdpOptions::default().limit(1 << 20))?;
/// # Ok::<(), tracepoint_sinks::SinkError>(())
/// ```
#[derive(Debug)]
pub struct UdpSink {
    server: UdpServer,
}

impl UdpSink {
    /// Binds the port of an address, or of the options. Clients are answered when the session starts.
    ///
    /// # Errors
    ///
    /// As [`UdpServer::bind`].
    pub fn bind(options: impl Into<UdpOptions>) -> Result<Self, SinkError> {
        Ok(Self { server: UdpServer::bind(options.into())? })
    }

    /// Returns the address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns a handle that reads the statistics while a session uses the sink.
    pub fn watch(&self) -> UdpWatch {
        self.server.watch()
    }
}

impl Sink for UdpSink {
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
        let mut account = account.clone();
        accounting::count_missed(&mut account, |stream, missed| {
            stream.sink += missed;
            *stream.sink_lost.entry(NOT_HERE.to_owned()).or_default() += missed;
        });
        self.server.end(Some(account));
        self.server.wait();
        Ok(())
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for UdpSink {
    /// Packets that were sent may not have arrived.
    fn stores(&self) -> bool {
        false
    }

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
