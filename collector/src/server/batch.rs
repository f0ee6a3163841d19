//! Receives many datagrams in one system call.
#![expect(unsafe_code, reason = "`recvmmsg` has no safe interface")]

use std::array;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::null_mut;

/// Datagrams received per call.
const BATCH: usize = 64;
/// Maximum size of a datagram in bytes.
const LARGEST: usize = 65_535;
/// Distance of two datagrams in memory. At 64 KiB, their bytes would map to the same cache sets and evict each other before they are read. At this
/// distance they occupy the cache as if each followed the previous one at 8,960 bytes.
const STRIDE: usize = (64 << 10) + 8960;

/// Buffers for the datagrams of one call.
pub(super) struct Batch {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BATCH * STRIDE], sizes: Vec::with_capacity(BATCH) }
    }

    /// Receives the waiting datagrams, replacing those received before.
    pub(super) fn receive(&mut self, socket: impl AsFd) -> io::Result<()> {
        self.sizes.clear();
        let mut places = self.bytes.chunks_exact_mut(STRIDE);
        let mut rooms: [libc::iovec; BATCH] = array::from_fn(|_| {
            let place = places.next().unwrap_or_default();
            libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len().min(LARGEST) }
        });
        // SAFETY: zero is a valid value of all fields: no address, no buffers, no control messages.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (header, room) in headers.iter_mut().zip(&mut rooms) {
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (room, 1);
        }
        // An `int` in glibc, and unsigned in musl.
        let flags = libc::MSG_DONTWAIT as _;
        let number = socket.as_fd().as_raw_fd();
        // SAFETY: the descriptor is open while it is borrowed. There are `BATCH` headers, each with one buffer, which is in `bytes` and does not
        // overlap with another; the kernel uses none of them after the call.
        let received =
            unsafe { libc::recvmmsg(number, headers.as_mut_ptr(), BATCH as libc::c_uint, flags, null_mut()) };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        self.sizes.extend(headers[..received].iter().map(|header| header.msg_len as usize));
        Ok(())
    }

    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(STRIDE).zip(&self.sizes).map(|(room, size)| &room[..*size])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_waiting_datagrams_are_received_in_order() -> io::Result<()> {
        let receiver = UdpSocket::bind("127.0.0.1:0")?;
        let sender = UdpSocket::bind("127.0.0.1:0")?;
        sender.connect(receiver.local_addr()?)?;
        let mut batch = Batch::new();
        assert_eq!(batch.receive(&receiver).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
        let large = vec![7; 60_000];
        for round in [&[b"one".as_slice(), b"", &large][..], &[b"two"]] {
            round.iter().try_for_each(|datagram| sender.send(datagram).map(drop))?;
            batch.receive(&receiver)?;
            assert!(batch.datagrams().eq(round.iter().copied()));
        }
        Ok(())
    }
}
