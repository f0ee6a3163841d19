//! The position up to which a stream was taken, and the check of the next packet.

use super::walker::{EventCount, Walker};
use crate::checksum;
use crate::metadata::Metadata;
use std::collections::BTreeMap;
use tracepoint_ring::channel::PacketHeader;

/// Maximum sequence number of a packet of a valid ring.
const MAX_SEQUENCE: u64 = u64::MAX / 2;

/// The position up to which a stream was taken.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// Number of records up to here, including lost ones.
    pub(crate) records: u64,
    /// The `packet_seq_num` of the last packet.
    pub(crate) sequence: u64,
    /// The `timestamp_end` of the last packet.
    pub(crate) end: u64,
    /// The `events_discarded` of the last packet.
    pub(crate) discarded: u64,
    /// Counts of events in the packets, by event id.
    pub(crate) events: BTreeMap<u64, EventCount>,
}

/// A packet that fits after a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextPacket {
    /// Number of records in the stream before the packet.
    pub(crate) before: u64,
    /// Number of records in the stream up to its end.
    pub(crate) after: u64,
    sequence: u64,
    end: u64,
    discarded: u64,
}

impl NextPacket {
    pub(crate) const fn is_empty(&self) -> bool {
        self.before == self.after
    }
}

impl Position {
    /// The beginning of a stream whose channel was opened at `opened`.
    pub(crate) const fn new(opened: u64) -> Self {
        Self { records: 0, sequence: 0, end: opened, discarded: 0, events: BTreeMap::new() }
    }

    /// Checks the next packet: `walker` counts its records, and it must fit after this position. Returns the reason if it does not.
    ///
    /// A packet that was not closed is completed first; `open` is then the stream's counter of discarded events.
    pub(crate) fn check(
        &self,
        walker: &mut Walker,
        metadata: &Metadata,
        bytes: &mut [u8],
        open: Option<u64>,
    ) -> Result<NextPacket, String> {
        if let (Some(reason), None) = (checksum::check(bytes).damage(), open) {
            return Err(reason);
        }
        let mut head = PacketHeader::parse(bytes);
        if let Some(discarded) = open {
            (head.packet_bits, head.end) = (head.content_bits, head.begin);
            head.discarded = discarded.max(self.discarded);
            head.write_to(bytes);
        }
        let content = walker.walk(metadata, &head, bytes).map_err(|error| error.to_string())?;
        if open.is_some() {
            head.end = content.last;
            head.write_to(bytes);
        }
        self.fits(&head, content.records, content.last)
    }

    fn fits(&self, head: &PacketHeader, records: u64, last: u64) -> Result<NextPacket, String> {
        let reason = if head.sequence > MAX_SEQUENCE {
            "its packet_seq_num is out of range"
        } else if head.begin < self.end {
            "it begins before the end of the previous packet"
        } else if head.end < last {
            "it ends before its last event"
        } else if head.events_before < self.records {
            "its events_before is less than the number of earlier events"
        } else if head.discarded < self.discarded {
            "its events_discarded is less than that of the previous packet"
        } else if let Some(after) = head.events_before.checked_add(records) {
            let PacketHeader { events_before: before, sequence, end, discarded, .. } = *head;
            return Ok(NextPacket { before, after, sequence, end, discarded });
        } else {
            "its events_before is out of range"
        };
        Err(reason.to_owned())
    }

    /// Moves past the packet that was checked last.
    pub(crate) fn advance(&mut self, next: &NextPacket, walker: &Walker) {
        (self.records, self.sequence, self.end, self.discarded) = (next.after, next.sequence, next.end, next.discarded);
        for (id, found) in walker.counts() {
            self.events.entry(id).or_default().add(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_ring::channel::StreamKey;

    fn head(sequence: u64, (begin, end): (u64, u64), before: u64, discarded: u64) -> PacketHeader {
        PacketHeader {
            end,
            sequence,
            discarded,
            events_before: before,
            ..PacketHeader::empty(StreamKey::default(), begin)
        }
    }

    #[test]
    fn packets_must_follow_the_position() {
        let mut position = Position::new(100);
        let walker = Walker::new(None);
        let next = position.fits(&head(1, (100, 150), 0, 0), 3, 150).unwrap();
        assert_eq!((next.before, next.after), (0, 3));
        position.advance(&next, &walker);
        // Packet 2 is missing.
        let next = position.fits(&head(3, (200, 260), 7, 4), 2, 250).unwrap();
        assert_eq!((next.before, next.after), (7, 9));
        position.advance(&next, &walker);
        for (bad, part) in [
            (head(4, (255, 300), 9, 4), "begins before"),
            (head(4, (300, 200), 9, 4), "ends before"),
            (head(4, (300, 300), 8, 4), "less than the number of earlier"),
            (head(4, (300, 300), 9, 3), "less than that of the previous"),
            (head(4, (300, 300), u64::MAX, 4), "events_before is out of range"),
            (head(u64::MAX, (300, 300), 9, 4), "packet_seq_num is out of range"),
        ] {
            let reason = position.fits(&bad, 2, 250).expect_err(part);
            assert!(reason.contains(part), "{reason}");
        }
    }
}
