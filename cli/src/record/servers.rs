//! Where the processes serve their events.

use crate::output;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tracepoint_control::{Ack, ProcessKey};

/// The servers that were told of.
#[derive(Debug, Default)]
pub(super) struct Servers(BTreeSet<(ProcessKey, SocketAddr)>);

impl Servers {
    /// Tells of those that are new.
    pub(super) fn tell(&mut self, acks: &[Ack]) {
        for ack in acks {
            for server in &ack.servers {
                if self.0.insert((ack.process, *server)) {
                    let (pid, name) = (ack.process.pid, &ack.name);
                    let address =
                        if server.ip().is_loopback() { String::new() } else { "--server-address HERE ".to_owned() };
                    let port = server.port();
                    output::note(&format!(
                        "process {pid} ({name}) serves its events on UDP {server}: tracectl read {address}--server-port {port}"
                    ));
                }
            }
        }
    }
}
