//! The servers at which processes serve their events.

use crate::message;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tracepoint_control::{ProcessKey, Recorded};

/// The servers that were printed.
#[derive(Debug, Default)]
pub(super) struct Servers(BTreeSet<(ProcessKey, SocketAddr)>);

impl Servers {
    /// Prints the servers that are new.
    pub(super) fn print_new(&mut self, recorded: &[Recorded]) {
        let of_process = |recorded: &Recorded| Some((recorded.process?, recorded.name.clone()));
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
