//! The baseline: the same datagrams, prepared in advance and sent one call after the other.

use crate::served::Sent;
use crate::{Outcome, Spent};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg, sockopt};
use std::io::IoSlice;
use std::net::UdpSocket;
use tracepoint_sinks::udp::DATAGRAMS_PER_CALL;

/// Sends as many datagrams as the server did, with as many bytes, none of them twice.
pub(crate) fn send(sent: &Sent) -> Outcome<Spent> {
    let client = UdpSocket::bind("127.0.0.1:0")?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(client.local_addr()?)?;
    // As much as the server requests; the system may grant less.
    let _ = sockopt::set_socket_send_buffer_size(&socket, 4 << 20);
    let size = usize::try_from(sent.bytes)?.div_ceil(usize::try_from(sent.datagrams)?);
    let memory = vec![0x5a_u8; usize::try_from(sent.bytes)?];
    let begun = Spent::begin();
    let datagrams: Vec<_> = memory.chunks(size).map(|datagram| [IoSlice::new(datagram)]).collect();
    let mut rest = &datagrams[..];
    while !rest.is_empty() {
        let count = rest.len().min(DATAGRAMS_PER_CALL);
        let mut controls: Vec<_> = (0..count).map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: Vec<_> =
            rest[..count].iter().zip(&mut controls).map(|(slice, control)| MMsgHdr::new(slice, control)).collect();
        rest = &rest[sendmmsg(&socket, &mut messages, SendFlags::NOSIGNAL)?..];
    }
    Ok(begun.end())
}
