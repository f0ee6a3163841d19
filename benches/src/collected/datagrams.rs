//! Sends packets as datagrams of the stream protocol, many per system call.

use crate::Outcome;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg, sockopt};
use std::io::IoSlice;
use std::net::{Ipv4Addr, UdpSocket};
use tracepoint_wire::stream::{DatagramHeader, NO_SEQ, Route, wire_head};

/// Maximum number of packet bytes in flight, which is the capacity of a receiver's socket.
pub(crate) const WINDOW: u64 = 3 << 20;
/// Datagrams per call.
const BATCH: usize = 64;

/// A sender of one stream.
pub(crate) struct Datagrams {
    pub(crate) socket: UdpSocket,
    token: [u8; 16],
    handle: u64,
    mtu: usize,
    wire: Vec<u8>,
}

impl Datagrams {
    pub(crate) fn new(port: u16, token: [u8; 16], handle: u64, mtu: usize) -> Outcome<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect((Ipv4Addr::LOCALHOST, port))?;
        // As much as possible; the system may grant less.
        let _ = sockopt::set_socket_send_buffer_size(&socket, 4 << 20);
        Ok(Self { socket, token, handle, mtu, wire: Vec::new() })
    }

    /// Sends a packet; all of it, or the bytes from an offset on of this length.
    pub(crate) fn packet(&mut self, seq: u64, packet: &[u8], part: Option<(u32, u32)>) -> Outcome {
        let route = Route { handle: self.handle, seq, prev_seq: seq.checked_sub(1).unwrap_or(NO_SEQ), circuit_id: 0 };
        let head = wire_head(packet, route).ok_or("a packet is too short")?;
        self.wire.clear();
        self.wire.extend_from_slice(&head);
        self.wire.extend_from_slice(&packet[32..]);
        let unit = self.mtu - DatagramHeader::SIZE;
        let (total, first) = (self.wire.len() as u32, DatagramHeader::probe(self.token));
        let mut headers = Vec::new();
        for (number, bytes) in self.wire.chunks(unit).enumerate() {
            let offset = (number * unit) as u32;
            if part.is_none_or(|(from, length)| (from..from + length).contains(&offset)) {
                let again = part.is_some();
                let (handle, unit) = (self.handle, unit as u32);
                let header = DatagramHeader { probe: false, handle, seq, offset, total, unit, again, ..first };
                headers.push((header.encode(), bytes));
            }
        }
        for datagrams in headers.chunks(BATCH) {
            let slices: Vec<_> =
                datagrams.iter().map(|(header, bytes)| [IoSlice::new(header), IoSlice::new(bytes)]).collect();
            let mut sent = 0;
            while sent < slices.len() {
                let mut controls: Vec<_> = slices[sent..].iter().map(|_| SendAncillaryBuffer::default()).collect();
                let messages = slices[sent..].iter().zip(&mut controls);
                let mut messages: Vec<_> = messages.map(|(slice, control)| MMsgHdr::new(slice, control)).collect();
                sent += sendmmsg(&self.socket, &mut messages, SendFlags::NOSIGNAL)?;
            }
        }
        Ok(())
    }
}
