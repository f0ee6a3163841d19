//! A host: IP below UDP and TCP, traced as packets go up and down.

use crate::link::Link;
use crate::protocol::Protocol;
use crate::wire::{ACK, Datagram, PSH, Packet, Segment, TCP, UDP};
use anyhow::Result;

/// Ticks after which an unacknowledged segment is sent again.
const PATIENCE: u32 = 10;
/// Size of a segment in bytes.
const SEGMENT: usize = 512;
const PORT: u16 = 7;

/// The protocols that both hosts run.
pub(crate) struct Stack {
    pub(crate) ip: Protocol,
    pub(crate) udp: Protocol,
    pub(crate) tcp: Protocol,
}

/// One end of the link.
pub(crate) struct Host<'a> {
    stack: &'a Stack,
    address: u32,
    peer: u32,
    /// TCP: data to send, number of acknowledged bytes, and the time at which the segment after those was sent.
    outgoing: Vec<u8>,
    acknowledged: usize,
    sent_at: Option<u32>,
    /// Data received.
    pub(crate) incoming: Vec<u8>,
    pub(crate) datagrams: Vec<u32>,
}

/// The direction of a packet.
#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
}

impl<'a> Host<'a> {
    pub(crate) fn new(stack: &'a Stack, address: u32, peer: u32, outgoing: Vec<u8>) -> Self {
        let (incoming, datagrams) = (Vec::new(), Vec::new());
        Self { stack, address, peer, outgoing, acknowledged: 0, sent_at: None, incoming, datagrams }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.acknowledged == self.outgoing.len()
    }

    /// Sends one datagram with a number.
    pub(crate) fn send_datagram(&self, tick: u32, number: u32, link: &mut Link) -> Result<()> {
        let payload = number.to_be_bytes();
        let datagram = Datagram { source: PORT, destination: PORT, payload: &payload };
        self.stack.udp.count("sent");
        self.trace_datagram(tick, Way::Down, &datagram)?;
        self.send(tick, UDP, &datagram.to_bytes(self.address, self.peer), link)
    }

    /// Sends the next segment, or the last one again.
    pub(crate) fn send_segment(&mut self, tick: u32, link: &mut Link) -> Result<()> {
        let waits = self.sent_at.is_some_and(|sent_at| tick < sent_at + PATIENCE);
        if self.is_done() || waits {
            return Ok(());
        }
        self.stack.tcp.count(if self.sent_at.is_some() { "sent again" } else { "sent" });
        self.sent_at = Some(tick);
        let end = self.outgoing.len().min(self.acknowledged + SEGMENT);
        let payload = &self.outgoing[self.acknowledged..end];
        self.send_tcp(tick, self.acknowledged as u32, ACK | PSH, payload, link)
    }

    /// Takes one packet from the link.
    pub(crate) fn receive(&mut self, tick: u32, bytes: &[u8], link: &mut Link) -> Result<()> {
        let stack = self.stack;
        let Ok(packet) = Packet::parse(bytes) else {
            stack.ip.count("damaged");
            return Ok(());
        };
        stack.ip.count("received");
        self.trace_packet(tick, Way::Up, &packet)?;
        let (protocol, taken) = match packet.protocol {
            UDP => (&stack.udp, Datagram::parse(&packet).map(|datagram| self.receive_datagram(tick, &datagram))),
            TCP => (&stack.tcp, Segment::parse(&packet).map(|segment| self.receive_segment(tick, &segment, link))),
            _ => return Ok(()),
        };
        taken.unwrap_or_else(|_| {
            protocol.count("damaged");
            Ok(())
        })
    }

    fn receive_datagram(&mut self, tick: u32, datagram: &Datagram) -> Result<()> {
        self.stack.udp.count("received");
        self.trace_datagram(tick, Way::Up, datagram)?;
        self.datagrams.extend(datagram.payload.try_into().map(u32::from_be_bytes));
        Ok(())
    }

    fn receive_segment(&mut self, tick: u32, segment: &Segment, link: &mut Link) -> Result<()> {
        self.stack.tcp.count("received");
        self.trace_segment(tick, Way::Up, segment)?;
        if segment.acknowledged as usize > self.acknowledged {
            self.acknowledged = self.outgoing.len().min(segment.acknowledged as usize);
            self.sent_at = None;
        }
        if segment.payload.is_empty() {
            return Ok(());
        }
        if segment.sequence as usize == self.incoming.len() {
            self.incoming.extend(segment.payload);
        } else {
            self.stack.tcp.count("received twice");
        }
        self.stack.tcp.count("acknowledged");
        self.send_tcp(tick, self.acknowledged as u32, ACK, &[], link)
    }

    fn send_tcp(&self, tick: u32, sequence: u32, flags: u8, payload: &[u8], link: &mut Link) -> Result<()> {
        let acknowledged = self.incoming.len() as u32;
        let segment = Segment { source: PORT, destination: PORT, sequence, acknowledged, flags, payload };
        self.trace_segment(tick, Way::Down, &segment)?;
        self.send(tick, TCP, &segment.to_bytes(self.address, self.peer), link)
    }

    fn send(&self, tick: u32, protocol: u8, payload: &[u8], link: &mut Link) -> Result<()> {
        let packet = Packet { source: self.address, destination: self.peer, protocol, payload };
        self.stack.ip.count("sent");
        self.trace_packet(tick, Way::Down, &packet)?;
        link.send(tick, packet.to_bytes());
        Ok(())
    }

    fn trace_packet(&self, tick: u32, way: Way, packet: &Packet) -> Result<()> {
        let Packet { source, destination, protocol, payload } = packet;
        for trace in self.stack.ip.traces() {
            trace.trace6(tick, way as u8, *source, *destination, *protocol, payload.len() as u16)?;
        }
        Ok(())
    }

    fn trace_datagram(&self, tick: u32, way: Way, datagram: &Datagram) -> Result<()> {
        for trace in self.stack.udp.traces() {
            let length = datagram.payload.len() as u16;
            trace.trace5(tick, way as u8, datagram.source, datagram.destination, length)?;
        }
        Ok(())
    }

    fn trace_segment(&self, tick: u32, way: Way, segment: &Segment) -> Result<()> {
        let Segment { sequence, acknowledged, flags, payload, .. } = segment;
        for trace in self.stack.tcp.traces() {
            let length = payload.len() as u16;
            datatrace::trace!(trace, tick, way as u8, self.address, *sequence, *acknowledged, *flags, length)?;
        }
        Ok(())
    }
}
