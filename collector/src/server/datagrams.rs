//! Receives datagrams of senders that use the stream protocol.

use crate::shared::ServerState;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tracepoint_wire::stream::Datagram;

/// Datagrams received per call, and calls made before other tasks run.
const BATCH: usize = 64;
const CALLS: usize = 4;
/// Maximum size of a datagram in bytes.
const LARGEST: usize = 65_535;
/// Distance of two datagrams in memory. At 64 KiB, their bytes would map to the same cache sets and evict each other before they are read. At this
/// distance they occupy the cache as if each followed the previous one at 8,960 bytes.
const STRIDE: usize = (64 << 10) + 8960;

/// Buffers for the datagrams of one call.
struct Batch {
    bytes: Vec<u8>,
    headers: MultiHeaders<()>,
    sizes: Vec<usize>,
}

impl Batch {
    fn new() -> Self {
        let headers = MultiHeaders::preallocate(BATCH, None);
        Self { bytes: vec![0; BATCH * STRIDE], headers, sizes: Vec::with_capacity(BATCH) }
    }

    /// Receives the waiting datagrams, replacing those received before.
    fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.sizes.clear();
        let mut rooms = self.bytes.chunks_exact_mut(STRIDE).map(|room| &mut room[..LARGEST]);
        let mut slices: [_; BATCH] = std::array::from_fn(|_| [IoSliceMut::new(rooms.next().unwrap_or_default())]);
        let received =
            recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        self.sizes.extend(received.map(|message| message.bytes));
        Ok(())
    }

    fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(STRIDE).zip(&self.sizes).map(|(room, size)| &room[..*size])
    }
}

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
