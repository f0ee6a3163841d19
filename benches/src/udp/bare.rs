//! The yardstick: datagrams that are there already, sent one call after the other.

use crate::Outcome;
use crate::served::Sent;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg, sockopt};
use std::io::IoSlice;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use tracepoint_sinks::udp::DATAGRAMS_PER_CALL;

/// Sends as many datagrams as the server did, of `mtu` bytes, which it filled but for a record's size.
pub(crate) fn send(mtu: u16, sent: &Sent) -> Outcome<Duration> {
    let client = UdpSocket::bind("127.0.0.1:0")?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(client.local_addr()?)?;
    let _ = sockopt::set_socket_send_buffer_size(&socket, 4 << 20);
    // The first round has no server before it: nothing is compared with it.
    let datagrams = usize::try_from(sent.datagrams)?.max(DATAGRAMS_PER_CALL);
    let size = if sent.datagrams == 0 { usize::from(mtu) } else { usize::try_from(sent.bytes)? / datagrams };
    let datagram = vec![0x5a; size];
    let begun = Instant::now();
    let mut left = datagrams;
    while left > 0 {
        let count = left.min(DATAGRAMS_PER_CALL);
        let slices: Vec<_> = (0..count).map(|_| [IoSlice::new(&datagram)]).collect();
        let mut controls: Vec<_> = (0..count).map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: Vec<_> = slices.iter().zip(&mut controls).map(|(s, c)| MMsgHdr::new(s, c)).collect();
        left -= sendmmsg(&socket, &mut messages, SendFlags::NOSIGNAL)?;
    }
    Ok(begun.elapsed())
}
