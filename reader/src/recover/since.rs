//! Leaves out the events of a packet that are earlier than the begin of a snapshot.
//!
//! At most one packet of a stream is cut: the packets before it are left out entirely, and the packets after it are unchanged. The events that are
//! left out show as a gap between the packet's `events_before` and the packet before it, like those of overwritten packets.

use crate::metadata::Metadata;
use crate::packet::PacketDecoder;
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader};

/// The remainder of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketRemainder {
    /// All of it.
    Whole,
    /// The first `bytes` bytes, after `left_out` events were left out.
    Cut { bytes: usize, left_out: u64 },
    /// Nothing.
    Nothing,
}

/// Leaves out the events of a sound packet before `since`. A packet that was cut has to get a new checksum.
pub(super) fn leave_out_before(since: u64, metadata: &Metadata, bytes: &mut [u8]) -> PacketRemainder {
    let mut head = PacketHeader::parse(bytes);
    if head.begin >= since {
        return PacketRemainder::Whole;
    }
    if head.end < since {
        return PacketRemainder::Nothing;
    }
    let Some((at, first, left_out)) = first_from(since, metadata, bytes) else { return PacketRemainder::Nothing };
    let end = usize::try_from(head.content_bits / 8).unwrap_or(0);
    if left_out == 0 || !(HEADER_SIZE..=end).contains(&at) || end > bytes.len() {
        return PacketRemainder::Whole;
    }
    bytes.copy_within(at..end, HEADER_SIZE);
    let size = HEADER_SIZE + end - at;
    head.begin = first;
    head.events_before = head.events_before.saturating_add(left_out);
    head = PacketHeader { content_bits: size as u64 * 8, packet_bits: size as u64 * 8, ..head };
    head.write_to(bytes);
    PacketRemainder::Cut { bytes: size, left_out }
}

/// The offset of the first event at or after `since`, its time, and the number of events before it.
fn first_from(since: u64, metadata: &Metadata, bytes: &[u8]) -> Option<(usize, u64, u64)> {
    let mut events = PacketDecoder::new(metadata, bytes).ok()?;
    let mut before = 0;
    loop {
        let at = events.offset();
        let event = events.next()?.ok()?;
        if event.cycles >= since {
            return Some((at, event.cycles, before));
        }
        before += 1;
    }
}
