//! `tracectl serve`: a trace for clients of the UDP trace server.

use crate::Ended;
use crate::failure::{self, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::units;
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_sinks::SinkError;
use tracepoint_sinks::udp::{
    DEFAULT_LIMIT, LegacyContent, Replay, UdpOptions, UdpServer, UdpStats, port_from_environment,
};

/// How often it looks whether all is done.
const LOOK: Duration = Duration::from_millis(50);
/// How long it goes on after Ctrl-C, to send what is left to the client.
const FAREWELL: Duration = Duration::from_secs(10);

/// Serves a trace to clients of the UDP trace server, one at a time, and ends when it has been read
///
/// Events that one client did not take wait for the next. Clients on this machine are served as they ask; those on other
/// machines get batches when they have proven their address, and single events if they are allowed by name. Nobody is served over the
/// network unless --address says so. Ctrl-C ends the session, and the trace with it.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl serve /tmp/trace
  tracectl serve /var/tmp/shop.dt
  tracectl serve /tmp/trace --address 0.0.0.0 --allow 192.0.2.7 --rate 4M
  tracectl serve /tmp/trace --events-from /tmp/events     (then: echo hello | socat - UNIX-SENDTO:/tmp/events)

{}", failure::EXIT_CODES))]
pub(crate) struct Serve {
    /// A directory with a CTF trace, or a dt file of a session
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The address of this machine to listen on; 0.0.0.0 or :: for all
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    address: String,
    /// The port; 0 takes a free one [default: that of the environment's `TRACE_SERVER_PORT`, or 5556]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// An address on another machine that gets single events without a proof; may be given again
    #[arg(long, value_name = "ADDRESS")]
    allow: Vec<IpAddr>,
    /// How many bytes per second are sent at most [default: 4M for single events, 1M to other machines; no limit for batches]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    rate: Option<u64>,
    /// How many bytes of events wait for a client
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value_t = DEFAULT_LIMIT as u64)]
    limit: u64,
    /// End a session of single events when there was nothing to send for so long
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    idle: Option<Duration>,
    /// End a session of single events when it has lasted so long
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    max_session: Option<Duration>,
    /// Send single events as the bytes of their records, not as text
    #[arg(long)]
    records: bool,
    /// Do not offer batches
    #[arg(long)]
    no_batches: bool,
    /// Take further events from a FIFO (each line is one) or a Unix datagram socket (made if there is nothing); the trace
    /// then ends with Ctrl-C
    #[arg(long, value_name = "PATH")]
    events_from: Option<PathBuf>,
    /// Say where it listens, and at the end what was done, as one JSON object each
    #[arg(long)]
    json: bool,
}

impl Serve {
    pub(crate) fn run(&self) -> Ended {
        let replay = Replay::open(&self.path)?;
        let mut server = UdpServer::bind(self.options()?)?;
        replay.begin(&mut server)?;
        let interrupt = Interrupt::once()?;
        self.say_where(&server)?;
        if !replay.has_batches() && !self.no_batches {
            output::note("this trace is laid out by another tracer: it is served event by event");
        }
        // A slot stands for itself, and a stream file ends where it is damaged.
        let unserved = if self.path.is_file() { "not served" } else { "what follows in this stream is not served" };
        let damaged = AtomicBool::new(false);
        let incomplete = AtomicBool::new(false);
        thread::scope(|scope| {
            let feed = scope.spawn(|| {
                replay.run(&server, |damage| {
                    damaged.store(true, Ordering::Relaxed);
                    failure::say_error(&format!("{damage}; {unserved}"));
                })
            });
            while !feed.is_finished() && !interrupt.is_asked() {
                thread::sleep(LOOK);
            }
            if !feed.is_finished() {
                // What is not read yet is counted, before the client is told what is lost.
                server.stop_taking();
            }
            let all = feed.join().unwrap_or(false);
            incomplete.store(!all, Ordering::Relaxed);
            while self.events_from.is_some() && !interrupt.is_asked() {
                thread::sleep(LOOK);
            }
            server.end(replay.account_of(&server));
            wait(&server, &interrupt);
            server.quit();
        });
        server.wait();
        self.say_what(&server.stats())?;
        Ok(if damaged.into_inner() || incomplete.into_inner() || server.stats().lost > 0 {
            Outcome::Wanting
        } else {
            Outcome::Well
        })
    }

    fn options(&self) -> Result<UdpOptions, Failure> {
        let mut options = UdpOptions::default()
            .address(self.resolve()?)
            .limit(usize::try_from(self.limit).unwrap_or(usize::MAX))
            .offer_batches(!self.no_batches)
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
        let port = self.port.unwrap_or_else(port_from_environment);
        let failed = |error| {
            SinkError::new(format!("find the address `{}`; give an IP address of this machine", self.address), error)
        };
        let mut found = (self.address.as_str(), port).to_socket_addrs().map_err(failed)?;
        found.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()).into())
    }

    fn say_where(&self, server: &UdpServer) -> io::Result<()> {
        let address = server.address();
        if self.json {
            let mut out = output::raw();
            writeln!(out, "{}", json!({ "type": "listening", "address": address.to_string() }))?;
            return out.flush();
        }
        let port = address.port();
        let host = if address.ip().is_unspecified() { "HOST".to_owned() } else { address.ip().to_string() };
        output::note(&format!(
            "{} on {address}; to read: tracectl read --server-address {host} --server-port {port}",
            self.path.display()
        ));
        Ok(())
    }

    fn say_what(&self, stats: &UdpStats) -> io::Result<()> {
        let UdpStats { sessions, messages, bytes, legacy_events, batch_events, lost, ignored, refused, .. } = *stats;
        if self.json {
            let mut out = output::raw();
            let done = json!({
                "type": "served", "sessions": sessions, "messages": messages, "bytes": bytes,
                "stock_events": legacy_events, "batch_events": batch_events, "lost": lost,
                "ignored": ignored, "refused": refused,
            });
            writeln!(out, "{done}")?;
            return out.flush();
        }
        let events = legacy_events + batch_events;
        output::note(&format!(
            "sent {events} events in {messages} messages, {bytes} bytes, in {sessions} sessions; {lost} events were not \
             sent, {ignored} datagrams ignored, {refused} refused"
        ));
        Ok(())
    }
}

/// Waits until the server has ended; after Ctrl-C, not for long, and not for a client.
fn wait(server: &UdpServer, interrupt: &Interrupt) {
    let mut since = None;
    while !server.has_ended() {
        if interrupt.is_asked() {
            let since = since.get_or_insert_with(Instant::now);
            if !server.stats().serving || since.elapsed() >= FAREWELL {
                return;
            }
        }
        thread::sleep(LOOK);
    }
}
