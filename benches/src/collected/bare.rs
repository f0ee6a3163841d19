//! The baseline over UDP: a receiver that takes many datagrams per system call, and appends their contents to a file.
#![expect(unsafe_code, reason = "`recvmmsg` has no safe interface")]

use crate::Outcome;
use crate::datagrams::{Datagrams, WINDOW};
use crate::peers::Ports;
use rustix::net::sockopt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};
use tracepoint_wire::stream::{DatagramHeader, WIRE_HEAD};

/// Datagrams per call; followed by the size of the largest one.
const BATCH: usize = 64;
const LARGEST: usize = 9000;

/// Receives until it is killed. After each call, it reports the number of received bytes to a client over TCP, as a u64.
pub(crate) fn receive(directory: &Path) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, 8 << 20)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, 8 << 20));
    println!("{} {}", listener.local_addr()?.port(), socket.local_addr()?.port());
    let (mut client, _) = listener.accept()?;
    client.set_nodelay(true)?;
    let mut file = File::create(directory.join("datagrams"))?;
    let mut memory = vec![0; BATCH * LARGEST];
    let mut received = 0_u64;
    loop {
        let sizes = receive_many(&socket, &mut memory)?;
        let parts = memory.chunks_exact(LARGEST).zip(&sizes);
        let parts: Vec<_> = parts.map(|(room, size)| IoSlice::new(&room[DatagramHeader::SIZE..*size])).collect();
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if file.write_vectored(&parts)? != bytes {
            return Err("the file takes no more".into());
        }
        received += bytes as u64;
        client.write_all(&received.to_be_bytes())?;
    }
}

/// Receives at least one datagram, and returns the sizes of all.
fn receive_many(socket: &UdpSocket, memory: &mut [u8]) -> io::Result<Vec<usize>> {
    let mut rooms: Vec<_> = memory.chunks_exact_mut(LARGEST).map(IoSliceMut::new).collect();
    // SAFETY: zero is a valid value of all fields: no address, no buffers, no control messages.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for (header, room) in headers.iter_mut().zip(&mut rooms) {
        // An `IoSliceMut` has the layout of an iovec.
        (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (std::ptr::from_mut(room).cast(), 1);
    }
    let flags = libc::MSG_WAITFORONE;
    // SAFETY: there are `BATCH` headers, each with one buffer or none, and the kernel uses them only during the call.
    let received = unsafe {
        libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), BATCH as libc::c_uint, flags, std::ptr::null_mut())
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    Ok(headers[..received].iter().map(|header| header.msg_len as usize).collect())
}

/// Sends the datagrams of these packets, until all have been received. A lost one is an error.
pub(crate) fn send(to: Ports, packets: &[u8], size: usize, mtu: usize) -> Outcome<Duration> {
    let mut control = TcpStream::connect((Ipv4Addr::LOCALHOST, to.control))?;
    control.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut datagrams = Datagrams::new(to.data, [0; 16], 1, mtu)?;
    let (mut sent, mut received) = (0, 0);
    let mut hear = |received: &mut u64| -> Outcome {
        let mut number = [0; 8];
        control.read_exact(&mut number)?;
        *received = u64::from_be_bytes(number);
        Ok(())
    };
    let begun = Instant::now();
    for (seq, packet) in (0..).zip(packets.chunks_exact(size)) {
        while sent - received > WINDOW {
            hear(&mut received)?;
        }
        datagrams.packet(seq, packet, None)?;
        sent += (packet.len() + WIRE_HEAD / 2) as u64;
    }
    while received < sent {
        hear(&mut received).map_err(|error| format!("of {sent} bytes {received} were received: {error}"))?;
    }
    Ok(begun.elapsed())
}
