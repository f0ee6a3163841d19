//! The servers at which processes serve their events.

use crate::message;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tracepoint_control::{Ack, ProcessKey};

/// The servers that were printed.
#[derive(Debug, Default)]
pub(super) struct Servers(BTreeSet<(ProcessKey, SocketAddr)>);

impl Servers {
    /// Prints the servers that are new.
    pub(super) fn print_new(&mut self, acks: &[Ack]) {
        for (ack, server) in acks.iter().flat_map(|ack| ack.servers.iter().map(move |server| (ack, server))) {
            if self.0.insert((ack.process, *server)) {
                let (pid, name, port) = (ack.process.pid, &ack.name, server.port());
                let address = if server.ip().is_loopback() { "" } else { "--server-address HERE " };
                message::note(&format!(
                    "process {pid} ({name}) serves its events on UDP {server}: tracectl read {address}--server-port {port}"
                ));
            }
        }
    }
}
