//! The part of a stream that viewers can read while it is written.
//!
//! A stream is a series of *segments*, one per file. Each viewer has a [`Cursor`] in each stream. Cursors are independent of each other, and a slow
//! viewer costs nothing. The newest [`KEPT`] segments can be read; a viewer that falls further behind loses packets, and detects that by the packet
//! numbers.

use crate::storage::Segment;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_wire::relay::Index;

/// Maximum number of segments that stay open for viewers.
const KEPT: usize = 8;
/// Number of bits for the offset within a segment in the offsets sent to viewers. The segment's number is above them.
const OFFSET_BITS: u32 = 48;

/// A viewer's position in a stream: the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    segment: u64,
    entry: u64,
}

/// The state of a stream at a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorState {
    /// A packet. The offset is for [`View::place`].
    Packet { offset: u64, index: Index },
    /// No packet, and no event before this time follows.
    Inactive { time: u64, stream_class: u64 },
    /// No packet, and no promise about the time.
    Nothing,
    /// The stream has ended.
    End,
}

/// The readable part of a stream.
#[derive(Debug)]
pub(crate) struct View {
    segments: VecDeque<Segment>,
    /// The number of the first segment.
    first: u64,
    /// Packets of earlier segments that viewers could not read yet.
    passed: u64,
    /// Segments that the storage has not opened yet.
    upcoming: VecDeque<Segment>,
    /// Beacons since the last packet: no event before this time follows; and the instant from which viewers may see it.
    beacons: VecDeque<(u64, Instant)>,
    /// From the index of the first packet. Viewers abort if it changes.
    pub(crate) stream_class: Option<u64>,
    pub(crate) is_closed: bool,
}

impl View {
    pub(crate) fn new(segment: Segment) -> Self {
        Self {
            segments: VecDeque::from([segment]),
            first: 0,
            passed: 0,
            upcoming: VecDeque::new(),
            beacons: VecDeque::new(),
            stream_class: None,
            is_closed: false,
        }
    }

    /// Queues a segment that the storage will open next.
    pub(crate) fn will_open(&mut self, segment: Segment) {
        self.upcoming.push_back(segment);
    }

    /// The storage has opened the next segment. The last one ends here, and `moved` of its packets were moved to the new one.
    pub(crate) fn opened(&mut self, entries: u64, bytes: u64, moved: u64) {
        if let (Some(last), Some(mut next)) = (self.segments.back_mut(), self.upcoming.pop_front()) {
            // Packets that no synchronisation has released yet stay hidden.
            (last.entries, last.total, last.bytes) = (last.entries.min(entries), Some(entries), bytes);
            next.entries = moved;
            self.segments.push_back(next);
        }
        if self.segments.len() > KEPT {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(Segment { entries, total: Some(total), .. }) = self.segments.pop_front() {
            self.passed += total.saturating_sub(entries);
        }
        self.first += 1;
    }

    /// Closes all segments except the one being written, where viewers continue.
    pub(crate) fn forget_old(&mut self) {
        while self.segments.len() > 1 {
            self.forget_oldest();
        }
    }

    /// Returns whether some segments are not opened by the storage yet.
    pub(crate) fn is_behind(&self) -> bool {
        !self.upcoming.is_empty()
    }

    /// Returns whether the storage has many segments left to open.
    pub(crate) fn is_far_behind(&self) -> bool {
        self.upcoming.len() >= KEPT
    }

    /// Makes one more packet readable.
    pub(crate) fn stored(&mut self, stream_class: u64) {
        if self.passed > 0 {
            self.passed -= 1;
        } else if let Some(segment) = self.segments.iter_mut().find(|it| it.total.is_none() || it.hides_packets()) {
            segment.entries += 1;
        }
        self.stream_class.get_or_insert(stream_class);
        self.beacons.clear();
    }

    /// Records that bytes of metadata were stored.
    pub(crate) fn stored_bytes(&mut self, bytes: u64) {
        if let Some(last) = self.segments.back_mut() {
            last.bytes += bytes;
        }
    }

    /// Records a beacon. Times never decrease. Viewers see it after `hold`.
    pub(crate) fn inactive_until(&mut self, time: u64, now: Instant, hold: Duration) {
        let time = self.beacons.back().map_or(time, |(before, _)| time.max(*before));
        while self.beacons.get(1).is_some_and(|(_, from)| *from <= now) {
            self.beacons.pop_front();
        }
        self.beacons.push_back((time, now + hold));
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns the position of the oldest readable packet.
    pub(crate) fn begin(&self) -> Cursor {
        Cursor { segment: self.first, entry: 0 }
    }

    /// Returns the position after the last packet.
    pub(crate) fn end(&self) -> Cursor {
        let last = self.segments.back().map_or(0, |last| last.entries);
        Cursor { segment: self.first + self.segments.len() as u64 - 1, entry: last }
    }

    fn segment(&self, number: u64) -> Option<&Segment> {
        self.segments.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Returns the next item and advances the cursor past it. Costs a read of 72 bytes.
    pub(crate) fn next(&self, cursor: &mut Cursor, now: Instant) -> io::Result<CursorState> {
        if cursor.segment < self.first {
            *cursor = self.begin();
        }
        while let Some(segment) = self.segment(cursor.segment) {
            if cursor.entry < segment.entries {
                let (offset, index) = segment.entry(cursor.entry)?;
                cursor.entry += 1;
                return Ok(CursorState::Packet { offset: (cursor.segment << OFFSET_BITS) + offset, index });
            }
            if self.segment(cursor.segment + 1).is_none() || segment.hides_packets() {
                break;
            }
            *cursor = Cursor { segment: cursor.segment + 1, entry: cursor.entry - segment.entries };
        }
        let beacon = self.beacons.iter().rev().find(|(_, from)| *from <= now);
        Ok(match (beacon.copied(), self.stream_class) {
            _ if self.is_closed => CursorState::End,
            (Some((time, _)), Some(stream_class)) => CursorState::Inactive { time, stream_class },
            _ => CursorState::Nothing,
        })
    }

    /// Returns the file, and the offset in it, for an offset returned by [`next`](Self::next) or a later one in the same packet.
    pub(crate) fn place(&self, offset: u64) -> Option<(Arc<File>, u64)> {
        let (number, mut offset) = (offset >> OFFSET_BITS, offset & ((1 << OFFSET_BITS) - 1));
        let distance = number.wrapping_sub(self.first) & (u64::MAX >> OFFSET_BITS);
        let mut number = self.first + distance;
        loop {
            let segment = self.segment(number)?;
            // An offset beyond the end of an earlier segment: the packet was moved to the next one.
            if self.segment(number + 1).is_none() || offset < segment.bytes {
                return Some((Arc::clone(&segment.data), offset));
            }
            offset -= segment.bytes;
            number += 1;
        }
    }

    pub(crate) fn current(&self) -> Option<&Segment> {
        self.segments.back()
    }

    /// Returns the segments of metadata, with their numbers.
    pub(crate) fn metadata(&self) -> impl Iterator<Item = (u64, &Segment)> {
        (self.first..).zip(&self.segments)
    }
}
