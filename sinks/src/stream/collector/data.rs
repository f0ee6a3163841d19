//! The transport of packets: a TCP connection, or UDP datagrams. A packet's payload is sent from its place in memory, with gather I/O.

use super::kept::SentPacket;
use crate::stream::connection::write_parts;
use crate::stream::queue::QueuedPacket;
use crate::stream::streams::SentStream;
use crate::stream::throttle::{FrameLayout, Ticket};
use fileguard::GuardedFd;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_wire::stream::{DatagramHeader, ROUTE_OFFSET, ROUTE_SIZE, RecordHeader, Route, WIRE_HEAD, wire_head};

/// Number of datagrams per call.
const DATAGRAMS_PER_CALL: usize = 64;
/// Time without datagrams after which a probe refreshes the NAT mapping.
const KEEP_OPEN: Duration = Duration::from_secs(15);
/// Lower bound for the size of a datagram in bytes.
const MIN_MTU: u32 = 576;

/// The transport of packets.
#[derive(Debug)]
pub(super) enum Data {
    Tcp(GuardedFd<TcpStream>),
    Udp(Datagrams),
}

/// Datagrams to a collector.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: GuardedFd<UdpSocket>,
    token: [u8; 16],
    /// Number of payload bytes in each fragment except the last.
    unit: usize,
    /// When a datagram was last sent.
    sent_at: Instant,
}

/// A packet that is being sent.
#[derive(Debug)]
pub(super) struct OutgoingPacket {
    pub(super) packet: Arc<SentPacket>,
    route: Route,
    /// Its first bytes on the wire.
    head: [u8; WIRE_HEAD],
    /// The part to send, in bytes on the wire, and how much of it may be sent by now.
    part: Range<usize>,
    pub(super) ticket: Ticket,
    /// End of the bytes sent so far; over TCP this counts the record's header as well.
    done: usize,
    /// Set while the socket accepts no more bytes.
    pub(super) is_blocked: bool,
    /// Set for a retransmission.
    pub(super) is_again: bool,
}

impl OutgoingPacket {
    /// Prepares a part of a packet, as computed by [`Data::part`].
    pub(super) fn new(
        packet: Arc<SentPacket>,
        handle: u64,
        (part, ticket): (Range<usize>, Ticket),
        is_again: bool,
    ) -> Self {
        let route = Route { handle, seq: packet.seq(), prev_seq: packet.prev_seq, circuit_id: 0 };
        let content = packet.packet.content();
        // A packet always has a header: the drain gives no other.
        let head = wire_head(content, route).unwrap_or([0; WIRE_HEAD]);
        let done = part.start;
        Self { packet, route, head, part, ticket, done, is_blocked: false, is_again }
    }

    pub(super) const fn handle(&self) -> u64 {
        self.route.handle
    }

    pub(super) fn seq(&self) -> u64 {
        self.packet.seq()
    }

    /// Returns the part without a ticket; `None` if there is a ticket for everything.
    pub(super) fn unpaid(&self) -> Option<Range<usize>> {
        (self.ticket.end < self.part.end).then_some(self.ticket.end..self.part.end)
    }

    fn rest(&self) -> &[u8] {
        self.packet.packet.content().get(ROUTE_OFFSET..).unwrap_or_default()
    }

    fn size(&self) -> usize {
        WIRE_HEAD + self.rest().len()
    }

    /// Returns these bytes of the packet on the wire.
    fn bytes(&self, range: &Range<usize>) -> [&[u8]; 2] {
        let of_head = range.start.min(WIRE_HEAD)..range.end.min(WIRE_HEAD);
        let of_rest = range.start.saturating_sub(WIRE_HEAD)..range.end.saturating_sub(WIRE_HEAD);
        [&self.head[of_head], self.rest().get(of_rest).unwrap_or_default()]
    }
}

impl Data {
    pub(super) const fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Returns the units that packets are sent in.
    pub(super) const fn framing(&self) -> FrameLayout {
        match self {
            Self::Tcp(_) => FrameLayout { unit: None, header: RecordHeader::SIZE },
            Self::Udp(datagrams) => FrameLayout { unit: Some(datagrams.unit), header: DatagramHeader::SIZE },
        }
    }

    /// Returns the part of a packet to send, in bytes on the wire: all of it, or for datagrams the requested offset and length.
    pub(super) fn part(&self, packet: &QueuedPacket, asked: Option<(u32, u32)>) -> Range<usize> {
        let size = packet.content().len() + ROUTE_SIZE;
        match (self, asked) {
            (Self::Udp(Datagrams { unit, .. }), Some((offset, length))) => {
                let start = (offset as usize).min(size);
                // Fragments begin at multiples of the unit.
                start / unit * unit..start.saturating_add(length as usize).min(size)
            }
            _ => 0..size,
        }
    }

    /// Returns the highest number up to `last` that can be missing at the collector; `None` if none can.
    pub(super) fn last_to_send_again(&self, last: u64, stream: &SentStream) -> Option<u64> {
        match self {
            Self::Tcp(_) => stream.last_before.map(|before| before.min(last)),
            Self::Udp(_) => Some(last),
        }
    }

    /// Sends as much of a packet as its ticket and the socket allow. Returns `false` if not all of the ticket was sent.
    pub(super) fn send(&mut self, sending: &mut OutgoingPacket) -> io::Result<bool> {
        let all = self.send_paid(sending)?;
        sending.is_blocked = !all;
        Ok(all)
    }

    fn send_paid(&mut self, sending: &mut OutgoingPacket) -> io::Result<bool> {
        match self {
            Self::Tcp(socket) => {
                let mut head = [0; RecordHeader::SIZE + WIRE_HEAD];
                head[..RecordHeader::SIZE].copy_from_slice(&RecordHeader { size: sending.size() as u32 }.encode());
                head[RecordHeader::SIZE..].copy_from_slice(&sending.head);
                let mut done = sending.done;
                let end = RecordHeader::SIZE + sending.ticket.end;
                let all = write_parts(socket, [&head, sending.rest()], &mut done, end)?;
                sending.done = done;
                Ok(all)
            }
            Self::Udp(datagrams) => datagrams.send(sending),
        }
    }

    /// Refreshes the NAT mapping if that is due. Returns when it is due next.
    pub(super) fn keep_open(&mut self, now: Instant) -> Option<Instant> {
        let Self::Udp(datagrams) = self else { return None };
        if now.duration_since(datagrams.sent_at) >= KEEP_OPEN {
            datagrams.probe();
        }
        Some(datagrams.sent_at + KEEP_OPEN)
    }

    /// Returns the descriptor, for polling at once; `None` if the program has closed it.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(socket) => socket.get().ok().map(AsFd::as_fd),
            Self::Udp(datagrams) => datagrams.socket.get().ok().map(AsFd::as_fd),
        }
    }
}

impl Datagrams {
    /// Opens a socket for datagrams of at most `mtu` bytes to this address.
    pub(super) fn open(to: SocketAddr, token: [u8; 16], mtu: u32) -> io::Result<Self> {
        let socket = UdpSocket::bind(SocketAddr::new(unspecified(to), 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let unit = mtu.max(MIN_MTU) as usize - DatagramHeader::SIZE;
        Ok(Self { socket: GuardedFd::new(socket)?, token, unit, sent_at: Instant::now() })
    }

    /// Sends a probe. If it is lost, another one follows.
    pub(super) fn probe(&mut self) {
        self.sent_at = Instant::now();
        let _ = self.socket.get().and_then(|socket| socket.send(&DatagramHeader::probe(self.token).encode()));
    }

    fn send(&mut self, sending: &mut OutgoingPacket) -> io::Result<bool> {
        let size = sending.size();
        let end = sending.ticket.end;
        while sending.done < end {
            let ranges = (sending.done..end).step_by(self.unit).take(DATAGRAMS_PER_CALL);
            let ranges: Vec<_> = ranges.map(|at| at..(at + self.unit).min(size)).collect();
            let headers: Vec<_> = ranges.iter().map(|range| self.header(sending, range.start, size).encode()).collect();
            let slices = ranges.iter().zip(&headers).map(|(range, header)| {
                let [head, rest] = sending.bytes(range);
                [IoSlice::new(header), IoSlice::new(head), IoSlice::new(rest)]
            });
            let slices: Vec<_> = slices.collect();
            let mut controls: Vec<_> = slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
            let messages = slices.iter().zip(&mut controls).map(|(slice, control)| MMsgHdr::new(slice, control));
            let mut messages: Vec<_> = messages.collect();
            let sent = match sendmmsg(self.socket.get()?, &mut messages, SendFlags::NOSIGNAL) {
                Ok(count) => count.max(1),
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::MSGSIZE) => {
                    return Err(io::Error::other("a datagram is too large for the network; give a smaller `--mtu`"));
                }
                // The datagram is lost, as it might be in transit: no route, no memory, or no listener at the port at present.
                Err(_) => 1,
            };
            sending.done += sent * self.unit;
            self.sent_at = Instant::now();
        }
        Ok(true)
    }

    fn header(&self, sending: &OutgoingPacket, offset: usize, total: usize) -> DatagramHeader {
        DatagramHeader {
            probe: false,
            token: self.token,
            handle: sending.route.handle,
            seq: sending.route.seq,
            offset: offset as u32,
            total: total as u32,
            unit: self.unit as u32,
            again: sending.is_again,
        }
    }
}

fn unspecified(like: SocketAddr) -> std::net::IpAddr {
    match like {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
