//! A client and a server with a faulty network between them, in simulated time.

use super::link::{Faults, Link};
use super::server::{Plan, Server};
use std::fmt::Write;
use std::time::Duration;
use tracepoint_reader::udp::{Client, Options, Report, SessionEnd};

/// Maximum simulated time.
const LIMIT: Duration = Duration::from_secs(300);

pub struct Simulation {
    pub client: Client,
    pub server: Server,
    pub there: Link,
    pub back: Link,
    pub now: Duration,
    pub reports: Vec<Report>,
    /// The datagrams and reports, with their times; `None` if no log is kept.
    pub log: Option<String>,
}

impl Simulation {
    pub fn new(seed: u64, options: Options, plan: Plan, faults: [Faults; 2]) -> Self {
        let [there, back] = faults;
        Self {
            client: Client::new(options, Duration::ZERO),
            server: Server::new(seed, plan),
            there: Link::new(seed ^ 1, there),
            back: Link::new(seed ^ 2, back),
            now: Duration::ZERO,
            reports: Vec::new(),
            log: None,
        }
    }

    /// Advances the time by a millisecond.
    pub fn step(&mut self) {
        let now = self.now;
        let mut wakes = 0;
        while self.client.deadline().is_some_and(|deadline| deadline <= now) {
            self.client.wake(now);
            wakes += 1;
            assert!(wakes < 5, "the client never goes idle: {:?}", self.client);
        }
        while let Some(datagram) = self.client.outgoing() {
            self.note("client", || hex(&datagram));
            self.there.send(&datagram, now);
        }
        while let Some(datagram) = self.there.take(now) {
            self.server.receive(&datagram, now);
        }
        self.server.wake(now);
        while let Some(datagram) = self.server.outgoing() {
            self.note("server", || hex(&datagram));
            self.back.send(&datagram, now);
        }
        while let Some(datagram) = self.back.take(now) {
            self.client.receive(&datagram, now);
        }
        while let Some(report) = self.client.report() {
            self.note("report", || summary(&report));
            self.reports.push(report);
        }
        self.now += Duration::from_millis(1);
    }

    fn note(&mut self, who: &str, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "{:>5} {who} {}", self.now.as_millis(), what());
        }
    }

    /// Advances the time until the client ends.
    pub fn run(&mut self) -> SessionEnd {
        loop {
            if let Some(ending) = self.client.ending() {
                return ending;
            }
            assert!(self.now < LIMIT, "the client hangs: {:?}", self.client);
            self.step();
        }
    }

    /// Advances the time until the server is also done with the client.
    pub fn run_until_server_is_idle(&mut self) {
        self.run_until_server_is_idle_within(LIMIT);
    }

    /// The same, with a limit.
    pub fn run_until_server_is_idle_within(&mut self, time: Duration) {
        let limit = self.now + time;
        while !self.server.is_idle() {
            assert!(self.now < limit, "the server hangs: {:?}", self.server);
            self.step();
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// A report, without the bytes that the log already shows in the datagram before it.
fn summary(report: &Report) -> String {
    match report {
        Report::Metadata(text) => format!("Metadata, {} bytes", text.len()),
        Report::Account(text) => format!("Account, {} bytes", text.len()),
        Report::Batch(batch) => format!("Batch, {} events after {}", batch.events, batch.events_before),
        other => format!("{other:?}"),
    }
}
