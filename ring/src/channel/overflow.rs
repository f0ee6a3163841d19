//! The overflow: packets that were moved out of rings which are nearly full, while the sinks are slower than the events.
//!
//! ```text
//!   ring ──▶ copy of one packet ──▶ sink ──▶ its slot is released          as long as the ring is less than three quarters full
//!     └────▶ overflow ───────────▶ sink                                    beyond that: the slots are released at once
//! ```
//!
//! The consumer hands a *copy* of each packet to the sinks, so that no slot is in use while a sink writes, for however long. Its slot is
//! released when the sinks have the packet: a process that is killed has it in an output or in its ring. Only where events would be lost
//! otherwise, packets go into the overflow, which is memory of the process: a process that is killed then loses them. The consumer moves
//! them between two packets, and another thread may call [`OpenChannel::spill`](super::OpenChannel::spill) while a sink blocks.
//!
//! The overflow is bounded. If it gets full, nothing is moved until all of it was taken: events that come faster than any sink is would
//! only be copied once more before others are lost.

use super::buffer::Buffer;
use std::collections::{HashMap, VecDeque};

/// The part of a ring, in percent, that waits to be drained when its packets are moved.
const NEARLY_FULL: u32 = 75;

/// The moved packets of a channel, and the packet that the sinks are being given.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// By stream instance, the oldest first.
    streams: HashMap<u64, VecDeque<MovedPacket>>,
    bytes: usize,
    /// Whether it got full, and is not empty again.
    is_exhausted: bool,
    /// The stream instance and the number of the packet of which the consumer has a copy.
    handed_on: Option<(u64, u64)>,
    /// Memory of packets that were taken, for the next ones: fresh memory costs a page fault for each page.
    spare: Vec<Vec<u8>>,
    /// The number of packets that were moved so far.
    moved: u64,
}

/// A packet that was moved.
#[derive(Debug)]
pub(super) struct MovedPacket {
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) events_before: u64,
    pub(super) events_after: u64,
}

impl Overflow {
    /// The number of packets that were moved so far.
    pub(super) const fn moved(&self) -> u64 {
        self.moved
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The oldest moved packet of a stream, if its number is below `end`.
    pub(super) fn pop(&mut self, instance: u64, end: u64) -> Option<MovedPacket> {
        let packets = self.streams.get_mut(&instance)?;
        let packet = if packets.front()?.number < end { packets.pop_front()? } else { return None };
        self.bytes -= packet.bytes.len();
        self.is_exhausted &= self.bytes > 0;
        Some(packet)
    }

    /// Takes the memory of a packet that the sinks have.
    pub(super) fn reuse(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    /// Gives back what memory is not in use.
    pub(super) fn shrink(&mut self) {
        self.spare = Vec::new();
    }

    /// The consumer has a copy of this packet.
    pub(super) const fn hand_on(&mut self, instance: u64, number: u64) {
        self.handed_on = Some((instance, number));
    }

    /// The sinks have this packet: releases its slot, unless that was done meanwhile.
    pub(super) fn handed_on(&mut self, buffer: &Buffer, number: u64) {
        self.handed_on = None;
        if buffer.closed_packets().start <= number {
            buffer.release(number + 1);
        }
    }

    /// Moves the packets of a buffer that is nearly full, and releases their slots. `limit` returns how many bytes the packets here may have,
    /// which have so many now. `packet` returns the bytes of a packet, and the numbers of records in the stream before and after it; `None`
    /// if it is not one.
    pub(super) fn spill<'b>(
        &mut self,
        buffer: &Buffer,
        limit: impl Fn(usize) -> usize,
        packet: impl Fn(u64) -> Option<(&'b [u8], u64, u64)>,
    ) {
        if self.is_exhausted || buffer.waiting_percent() < NEARLY_FULL {
            return;
        }
        let limit = limit(self.bytes);
        for number in buffer.closed_packets() {
            if self.handed_on != Some((buffer.instance(), number)) {
                let Some((content, events_before, events_after)) = packet(number) else { return };
                if self.bytes + content.len() > limit {
                    self.is_exhausted = true;
                    return;
                }
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(content);
                self.bytes += content.len();
                self.moved += 1;
                let moved = MovedPacket { number, bytes, events_before, events_after };
                self.streams.entry(buffer.instance()).or_default().push_back(moved);
            }
            buffer.release(number + 1);
        }
    }
}
