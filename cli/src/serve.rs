//! `tracectl serve`: serves a recorded trace over UDP.

use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::Interrupt;
use crate::{message, output, units};
use clap::Args;
use serde_json::json;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_sinks::SinkError;
use tracepoint_sinks::udp::{
    DEFAULT_LEGACY_PACE, DEFAULT_LIMIT, LegacyContent, Replay, UdpOptions, UdpServer, UdpStats, port_from_environment,
};

/// Interval at which the end of the server is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time for which the server sends remaining events to its client after Ctrl-C.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Serves a trace over UDP to one client at a time
///
/// Ends when the trace has been read. Events that one client has not read are sent to the next. Clients on this machine choose the layout. Clients on
/// other machines get batches once they have proven their address, and single events if `--allow` names their address. The server listens on the
/// loopback interface unless `--address` says otherwise. Ctrl-C ends the session and the trace: a client gets the remaining events for a second, and
/// in every case the message that the session has ended. A second Ctrl-C ends it at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl serve /tmp/trace
  tracectl serve /var/tmp/shop.dt
  tracectl serve /tmp/trace --address 0.0.0.0 --allow 192.0.2.7 --rate 4M
  tracectl serve --events-from /tmp/events                (then: echo hello | socat - UNIX-SENDTO:/tmp/events)
  tracectl serve --events-from lines.txt --address 192.0.2.1 --allow 192.0.2.7")]
pub(crate) struct Serve {
    /// A directory with a CTF trace, or a dt file of a session; without it only the events of `--events-from` are served
    #[arg(value_name = "PATH", required_unless_present = "events_from")]
    path: Option<PathBuf>,
    /// The address of this machine to listen on; 0.0.0.0 or :: for all. A port here takes precedence over `--port`
    #[arg(long, help_heading = "Addresses", value_name = "ADDR[:PORT]", default_value = "127.0.0.1")]
    address: String,
    /// The port; 0: any free one [default: the environment variable `TRACE_SERVER_PORT`, or 5556]
    #[arg(long, help_heading = "Addresses", value_name = "PORT")]
    port: Option<u16>,
    /// Send single events to this address on another machine without a proof of address; may be given several times
    #[arg(long, help_heading = "Addresses", value_name = "ADDRESS")]
    allow: Vec<IpAddr>,
    /// Largest number of bytes per second [default: 4M for single events, 1M to other machines; no limit for batches]
    #[arg(long, help_heading = "Bounds", value_name = "SIZE", value_parser = units::size)]
    rate: Option<u64>,
    /// Largest number of single events per second, each of which takes one datagram
    #[arg(long, help_heading = "Bounds", value_name = "N", default_value_t = DEFAULT_LEGACY_PACE, value_parser = clap::value_parser!(u32).range(1..))]
    pace: u32,
    /// Largest number of bytes of events that wait for a client
    #[arg(long, help_heading = "Bounds", value_name = "SIZE", value_parser = units::size, default_value_t = DEFAULT_LIMIT as u64)]
    limit: u64,
    /// End a session of single events when there was nothing to send for this time
    #[arg(long, help_heading = "Bounds", value_name = "TIME", value_parser = units::duration)]
    idle: Option<Duration>,
    /// End a session of single events after this time
    #[arg(long, help_heading = "Bounds", value_name = "TIME", value_parser = units::duration)]
    max_session: Option<Duration>,
    /// Send single events as the bytes of their records instead of text
    #[arg(long)]
    records: bool,
    /// Do not offer batches
    #[arg(long)]
    no_batches: bool,
    /// Serve events from a file or a FIFO, one per line, or from a Unix datagram socket, which is created if the path does not exist. Events
    /// may have any bytes. The trace ends with the file; with a FIFO or a socket, at Ctrl-C
    #[arg(long, value_name = "PATH")]
    events_from: Option<PathBuf>,
    /// Write two JSON objects: the address at the start, and counts at the end
    #[arg(long)]
    json: bool,
}

impl Serve {
    pub(crate) fn run(&self) -> VerbResult {
        let replay = self.path.as_deref().map_or_else(Replay::without_trace, Replay::open)?;
        let mut server = UdpServer::bind(self.options()?)?;
        replay.begin(&mut server)?;
        let interrupt = Interrupt::each()?;
        self.print_address(&server)?;
        if self.path.is_some() && !replay.has_batches() && !self.no_batches {
            message::note("this trace has the packet layout of another tracer, and is served event by event");
        }
        let metadata_damage = self.path.as_deref().and_then(|path| replay.metadata_damage(path));
        if let Some(damage) = &metadata_damage {
            message::error(&format!("{damage}; it is served as it is"));
        }
        let damaged = AtomicBool::new(metadata_damage.is_some());
        let incomplete = AtomicBool::new(false);
        thread::scope(|scope| {
            let feed = scope.spawn(|| {
                replay.run(&server, |damage| {
                    damaged.store(true, Ordering::Relaxed);
                    message::error(&format!("{damage}; not served"));
                })
            });
            while !feed.is_finished() && !interrupt.is_requested() {
                thread::sleep(POLL_INTERVAL);
            }
            if !feed.is_finished() {
                // The rest of the trace is counted as lost before the client gets the final counts.
                server.stop_taking();
            }
            let events_left = || self.events_from.is_some() && !server.has_read_events();
            while events_left() && !interrupt.is_requested() {
                thread::sleep(POLL_INTERVAL);
            }
            let interrupted = interrupt.take();
            while !feed.is_finished() && !interrupt.is_requested() {
                thread::sleep(POLL_INTERVAL);
            }
            if interrupt.is_requested() {
                server.quit();
            }
            let all = feed.join().unwrap_or(false);
            incomplete.store(!all || self.reads_file() && events_left(), Ordering::Relaxed);
            server.end(replay.account_of(&server));
            wait(&server, &interrupt, interrupted);
            server.quit();
        });
        server.wait();
        let stats = server.stats();
        self.print_counts(&stats)?;
        Ok(if damaged.into_inner() || incomplete.into_inner() || stats.lost > 0 || stats.unacknowledged > 0 {
            Outcome::Incomplete
        } else {
            Outcome::Success
        })
    }

    /// True if the events come from a file, which has an end.
    fn reads_file(&self) -> bool {
        self.events_from.as_deref().is_some_and(Path::is_file)
    }

    fn options(&self) -> Result<UdpOptions, Failure> {
        let mut options = UdpOptions::default()
            .address(self.resolve()?)
            .limit(usize::try_from(self.limit).unwrap_or(usize::MAX))
            .offer_batches(!self.no_batches)
            .legacy_pace(self.pace)
            .flush(Duration::MAX)
            .linger(Duration::MAX);
        for address in &self.allow {
            options = options.allow(*address);
        }
        if self.records {
            options = options.content(LegacyContent::Record);
        }
        if let Some(rate) = self.rate {
            options = options.rate(rate).legacy_rate(rate).allowed_rate(rate);
        }
        if let Some(idle) = self.idle {
            options = options.idle(idle);
        }
        if let Some(longest) = self.max_session {
            options = options.max_session(longest);
        }
        if let Some(path) = &self.events_from {
            options = options.events_from(path);
        }
        Ok(options)
    }

    fn resolve(&self) -> Result<SocketAddr, Failure> {
        let (host, port) = units::host_and_port(&self.address)?;
        let port = port.or(self.port).map_or_else(port_from_environment, Ok)?;
        let failed = |error| {
            SinkError::new(format!("find the address `{}`; give an IP address of this machine", self.address), error)
        };
        let mut found = (host, port).to_socket_addrs().map_err(failed)?;
        found.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()).into())
    }

    fn print_address(&self, server: &UdpServer) -> io::Result<()> {
        let address = server.address();
        if self.json {
            return output::json(&json!({ "type": "listening", "address": address.to_string() }));
        }
        let port = address.port();
        let server = if address.ip().is_unspecified() { format!("HOST:{port}") } else { address.to_string() };
        let sources = self.path.iter().chain(&self.events_from).map(|path| path.display().to_string());
        message::note(&format!(
            "serving {} on {address}; read it with: tracectl read --server-address {server}",
            sources.collect::<Vec<_>>().join(" and ")
        ));
        Ok(())
    }

    fn print_counts(&self, stats: &UdpStats) -> io::Result<()> {
        let UdpStats { sessions, messages, bytes, legacy_events, batch_events, unacknowledged, lost, .. } = *stats;
        let UdpStats { ignored, refused, .. } = *stats;
        if self.json {
            return output::json(&json!({
                "type": "served", "sessions": sessions, "messages": messages, "bytes": bytes,
                "legacy_events": legacy_events, "batch_events": batch_events, "lost": lost,
                "unacknowledged": unacknowledged, "ignored": ignored, "refused": refused,
            }));
        }
        let events = legacy_events + batch_events;
        message::note(&format!(
            "sent {events} events in {messages} messages, {bytes} bytes, in {sessions} sessions; {lost} events were not \
             sent, {ignored} datagrams ignored, {refused} refused"
        ));
        if unacknowledged > 0 {
            message::note(&format!(
                "{unacknowledged} of the sent events were not acknowledged: their client did not end its session, and may not have them"
            ));
        }
        Ok(())
    }
}

/// Waits until the server has ended. After Ctrl-C it waits only for a client in session, for the grace period, and until a second Ctrl-C.
fn wait(server: &UdpServer, interrupt: &Interrupt, interrupted: bool) {
    let mut since = interrupted.then(Instant::now);
    while !server.has_ended() {
        if interrupt.take() && since.replace(Instant::now()).is_some() {
            return;
        }
        if since.is_some_and(|since| !server.stats().serving || since.elapsed() >= GRACE_PERIOD) {
            return;
        }
        thread::sleep(POLL_INTERVAL);
    }
}
