//! The servers at which traced processes offer their events.

use crate::message::{self, counted};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::SocketAddr;
use tracepoint_controller::RecordedProcess;
use tracepoint_reader::process::ProcessKey;
use tracepoint_sinks::udp::UdpStats;

/// The servers already printed.
#[derive(Debug, Default)]
pub(super) struct Servers(BTreeSet<(ProcessKey, SocketAddr)>);

impl Servers {
    pub(super) fn print_new(&mut self, recorded: &[RecordedProcess]) {
        let of_process = |recorded: &RecordedProcess| Some((recorded.process?, recorded.name.clone()));
        let servers = recorded.iter().filter_map(|recorded| Some((of_process(recorded)?, &recorded.servers)));
        for ((process, name), server) in
            servers.flat_map(|(of, servers)| servers.iter().map(move |server| (of.clone(), server)))
        {
            if self.0.insert((process, *server)) {
                let (pid, port) = (process.pid, server.port());
                let address = if server.ip().is_loopback() { "" } else { "--server-address HERE " };
                message::note(&format!(
                    "process {pid} ({name}) serves its events on UDP {server}: tracectl read {address}--server-port {port}"
                ));
            }
        }
    }
}

/// Final counts of the server of one process.
#[derive(Debug)]
pub(super) struct ServerCounts {
    pid: u32,
    address: SocketAddr,
    stats: UdpStats,
}

impl ServerCounts {
    pub(super) fn of(recorded: &[RecordedProcess]) -> Vec<Self> {
        let of_process = |recorded: &RecordedProcess| {
            let pid = recorded.process.map_or(0, |process| process.pid);
            let served = recorded.served.iter().map(|(address, stats)| Self { pid, address: *address, stats: *stats });
            served.collect::<Vec<_>>()
        };
        recorded.iter().flat_map(of_process).collect()
    }

    const fn sent(&self) -> u64 {
        self.stats.batch_events + self.stats.legacy_events
    }

    /// The number of events sent and clients served, and of events dropped for lack of a client.
    pub(super) fn text(&self) -> String {
        let Self { pid, address, stats } = self;
        let (sent, clients) = (counted(self.sent(), "event"), counted(stats.sessions, "client"));
        let mut text = format!("process {pid}: UDP {address} has sent {sent} to {clients}");
        for (events, what) in
            [(stats.unacknowledged, "of them were not acknowledged"), (stats.lost, "were sent to no client")]
        {
            if events > 0 {
                let _ = write!(text, ", {events} {what}");
            }
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let Self { pid, address, stats } = self;
        json!({
            "pid": pid, "server": address.to_string(), "clients": stats.sessions, "sent": self.sent(),
            "unacknowledged": stats.unacknowledged, "unsent": stats.lost,
        })
    }
}
