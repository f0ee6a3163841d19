//! Datagrams of senders that speak the stream protocol.

use crate::shared::Shared;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tracepoint_wire::stream::Datagram;

/// How many datagrams are taken by one call, and how many calls are made before others have their turn.
const BATCH: usize = 64;
const CALLS: usize = 4;
/// The largest datagram.
const LARGEST: usize = 65_535;
/// The distance of two datagrams in memory. At one of 64 KiB their bytes would share the same sets of the processor's caches, and push each other
/// out before they are read; at this one they lie in them as if they followed each other with 8,960 bytes each.
const STRIDE: usize = (64 << 10) + 8960;

/// The room for the datagrams of one call.
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

    /// Receives what has come, in place of what was received before.
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

/// Takes datagrams for as long as the collector runs.
pub(super) async fn datagrams(shared: Rc<Shared>, socket: UdpSocket) {
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

fn take(shared: &Shared, bytes: &[u8], now: Instant) {
    let mut hub = shared.hub.borrow_mut();
    let datagram = Datagram::decode(bytes).ok();
    let session = datagram.as_ref().and_then(|datagram| hub.session_of_token(&datagram.header.token));
    let Some((datagram, id)) = datagram.zip(session) else {
        hub.counts.ignored += 1;
        return;
    };
    hub.datagram(id, &datagram, now);
}
