//! Receives datagrams of senders that use the stream protocol.

use super::batch::Batch;
use crate::shared::ServerState;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tracepoint_wire::stream::Datagram;

/// Calls made before other tasks run.
const CALLS: usize = 4;

/// Handles datagrams for the lifetime of the collector.
pub(super) async fn datagrams(shared: Rc<ServerState>, socket: UdpSocket) {
    let mut batch = Batch::new();
    while socket.readable().await.is_ok() {
        for _ in 0..CALLS {
            if socket.try_io(Interest::READABLE, || batch.receive(&socket)).is_err() {
                break;
            }
            let now = Instant::now();
            for datagram in batch.datagrams() {
                take(&shared, datagram, now);
            }
        }
        tokio::task::yield_now().await;
    }
}

fn take(shared: &ServerState, bytes: &[u8], now: Instant) {
    let mut hub = shared.hub.borrow_mut();
    let datagram = Datagram::decode(bytes).ok();
    let session = datagram.as_ref().and_then(|datagram| hub.session_of_token(&datagram.header.token));
    let Some((datagram, id)) = datagram.zip(session) else {
        hub.counts.ignored += 1;
        return;
    };
    hub.datagram(id, &datagram, now);
}
