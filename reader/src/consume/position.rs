//! How far a stream was taken, and what a packet has to be to come next.

use crate::metadata::Metadata;
use crate::packet::PacketDecoder;
use crate::recover::Decoded;
use crate::ring::PacketHead;
use crate::sizes::Sizes;
use std::collections::BTreeMap;

/// How far a stream was taken.
#[derive(Clone, Debug)]
pub(super) struct Position {
    /// Records up to here, lost ones included.
    pub(super) records: u64,
    /// The `packet_seq_num` of the last packet.
    pub(super) sequence: u64,
    pub(super) end: u64,
    pub(super) discarded: u64,
    /// What was in the packets, by event.
    pub(super) decoded: BTreeMap<u64, Decoded>,
}

impl Position {
    /// Of a stream whose channel was opened at `opened`.
    pub(super) const fn new(opened: u64) -> Self {
        Self { records: 0, sequence: 0, end: opened, discarded: 0, decoded: BTreeMap::new() }
    }

    /// Moves behind a packet, if it fits there: how many records the stream has before and after it.
    pub(super) fn pass(&mut self, sequence: u64, head: &PacketHead, walked: &Walked) -> Result<(u64, u64), String> {
        let wrong = |what: &str| Err(format!("packet {sequence}: {what}"));
        if head.begin < self.end {
            return wrong("it begins before the packet before it ends");
        }
        if head.end < walked.last {
            return wrong("it ends before its last event");
        }
        if head.events_before < self.records {
            return wrong("its events_before is less than what came before it");
        }
        if head.discarded < self.discarded {
            return wrong("its events_discarded went back");
        }
        let Some(after) = head.events_before.checked_add(walked.records) else {
            return wrong("its events_before is beyond all reason");
        };
        (self.records, self.sequence, self.end, self.discarded) = (after, sequence, head.end, head.discarded);
        Ok((head.events_before, after))
    }
}

/// What there is in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walked {
    pub(super) records: u64,
    /// The time of the last one; the packet's begin, without one.
    pub(super) last: u64,
}

/// Walks from record to record.
#[derive(Debug)]
pub(super) struct Walk {
    /// `None`: records are decoded, value by value.
    sizes: Option<Sizes>,
    /// What was found in the last packet, by event id; those that are not 0 are in `touched`.
    found: Vec<Decoded>,
    touched: Vec<u16>,
}

impl Walk {
    pub(super) const fn new(sizes: Option<Sizes>) -> Self {
        Self { sizes, found: Vec::new(), touched: Vec::new() }
    }

    pub(super) fn describe(&mut self, sizes: Option<Sizes>) {
        self.sizes = sizes;
    }

    /// Walks through a packet that begins at `begin`.
    pub(super) fn packet(
        &mut self,
        metadata: &Metadata,
        class: u32,
        bytes: &[u8],
        begin: u64,
    ) -> Result<Walked, String> {
        for id in self.touched.drain(..) {
            self.found[usize::from(id)] = Decoded::default();
        }
        let mut walked = Walked { records: 0, last: begin };
        let Self { sizes, found, touched } = self;
        let mut count = |id: u16, time: u64| {
            let place = usize::from(id);
            if found.len() <= place {
                found.resize(place + 1, Decoded::default());
            }
            let found = &mut found[place];
            if found.count == 0 {
                touched.push(id);
            }
            (found.count, found.last) = (found.count + 1, time);
            walked.records += 1;
            walked.last = time;
        };
        if let Some(sizes) = sizes {
            for record in sizes.records(class, bytes, 0, begin) {
                let record = record.map_err(|_| "a record is not as the metadata says".to_owned())?;
                count(record.id, record.time);
            }
            return Ok(walked);
        }
        let mut last = begin;
        for event in PacketDecoder::new(metadata, bytes).map_err(|damage| damage.reason)? {
            let event = event.map_err(|damage| damage.reason)?;
            let id = u16::try_from(event.class.id).map_err(|_| "an event has an id that none has".to_owned())?;
            if event.cycles < last {
                return Err("an event is earlier than the one before it".to_owned());
            }
            last = event.cycles;
            count(id, last);
        }
        Ok(walked)
    }

    /// Adds what was found in the last packet to its stream.
    pub(super) fn settle(&self, position: &mut Position) {
        for id in &self.touched {
            let found = self.found[usize::from(*id)];
            let sum = position.decoded.entry(u64::from(*id)).or_default();
            sum.count += found.count;
            sum.last = sum.last.max(found.last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(begin: u64, end: u64, events_before: u64, discarded: u64) -> PacketHead {
        PacketHead::new(begin, end, events_before, discarded)
    }

    #[test]
    fn packets_follow_one_another() {
        let mut position = Position::new(100);
        let walked = Walked { records: 3, last: 150 };
        assert_eq!(position.pass(1, &head(100, 150, 0, 0), &walked), Ok((0, 3)));
        // One is missing in between.
        let walked = Walked { records: 2, last: 250 };
        assert_eq!(position.pass(3, &head(200, 260, 7, 4), &walked), Ok((7, 9)));
        for (bad, part) in [
            (head(255, 300, 9, 4), "begins before"),
            (head(300, 200, 9, 4), "ends before"),
            (head(300, 300, 8, 4), "less than what came"),
            (head(300, 300, 9, 3), "went back"),
            (head(300, 300, u64::MAX, 4), "beyond all reason"),
        ] {
            let reason = position.clone().pass(4, &bad, &walked).expect_err(part);
            assert!(reason.contains(part), "{reason}");
        }
    }
}
