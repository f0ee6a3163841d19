//! Merges streams by time while their packets arrive.
//!
//! An item is returned when no stream can have an earlier one. Each stream has either a waiting item or a *bound*, the time before which
//! it will have none. The bound is the end of its last packet, or later, if the source of the packets reports a later time. A stream without either
//! holds back all others.
//!
//! ```text
//!             feed                        pop, the last item of the packet
//!   starving ──────▶ waiting, in `heap` ────────────────────────────────────▶ starving, in `bounds` ──── end ────▶ gone
//! ```
//!
//! Time never goes backwards: an event earlier than one already returned is late. It is counted, and left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::PathBuf;

use super::cursor::StreamCursor;
use super::losses::KnownCounters;
use crate::item::Item;
use crate::metadata::Metadata;
use crate::stream::StreamReader;

/// The result of polling a trace that is still being written.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum PollResult {
    /// The next item. Times of events never go backwards.
    Item(Item),
    /// Nothing at present. The caller should sleep, for example 50 ms, and poll again.
    Wait,
    /// The trace has ended, and all items were returned.
    Ended,
}

/// Streams, identified by numbers given by the caller.
#[derive(Debug, Default)]
pub(crate) struct IncrementalMerge {
    streams: BTreeMap<u64, MergeInput>,
    /// The next item of each stream that has one, by time.
    heap: BinaryHeap<Reverse<(i64, u64)>>,
    /// The bound of each stream without an item.
    bounds: BTreeSet<(i64, u64)>,
    /// Streams that are still to be added have nothing before this time, as far as known.
    floor: Option<i64>,
    /// The time of the last item returned.
    last: Option<i64>,
    late: u64,
    /// Packets without a checksum, in streams that have ended.
    unchecked: u64,
}

#[derive(Debug)]
struct MergeInput {
    cursor: StreamCursor,
    bound: i64,
    /// True if no more packets will arrive.
    ended: bool,
}

impl IncrementalMerge {
    /// Adds a stream, called `name` in messages. `before` are its counters before its first packet.
    pub(crate) fn add(&mut self, stream: u64, metadata: &Metadata, name: PathBuf, before: KnownCounters) {
        let (reader, bound) = (StreamReader::fed(metadata, name), i64::MIN);
        let cursor = StreamCursor::new(reader, self.last.unwrap_or(bound), before);
        self.streams.insert(stream, MergeInput { cursor, bound, ended: false });
        self.bounds.insert((bound, stream));
    }

    /// The streams without an item, ordered by how much they hold back the others.
    pub(crate) fn starving(&self) -> impl Iterator<Item = u64> {
        self.bounds.iter().map(|(_, stream)| *stream)
    }

    /// Adds the next packets of a starving stream, and the metadata that describes them.
    pub(crate) fn feed(&mut self, stream: u64, metadata: &Metadata, bytes: Vec<u8>) {
        let Some(fed) = self.streams.get_mut(&stream) else { return };
        if self.bounds.remove(&(fed.bound, stream)) {
            fed.cursor.feed(metadata, bytes);
            self.advance(stream);
        }
    }

    /// A starving stream has nothing before `time`. An earlier time than before changes nothing; returns true if it was later.
    pub(crate) fn quiet_until(&mut self, stream: u64, time: i64) -> bool {
        let Some(fed) = self.streams.get_mut(&stream).filter(|fed| time > fed.bound) else { return false };
        if self.bounds.remove(&(fed.bound, stream)) {
            fed.bound = time;
            self.bounds.insert((time, stream));
        }
        true
    }

    /// Holds back items later than `floor`, because a stream that is still to be added may have earlier ones.
    pub(crate) fn set_floor(&mut self, floor: Option<i64>) {
        self.floor = floor;
    }

    /// Marks a stream as ended. Its remaining items are still returned.
    pub(crate) fn end(&mut self, stream: u64) {
        let Some(fed) = self.streams.get_mut(&stream) else { return };
        fed.ended = true;
        if self.bounds.remove(&(fed.bound, stream)) {
            self.remove(stream);
        }
    }

    /// The next item, if no stream can have an earlier one.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        loop {
            let Reverse((time, stream)) = *self.heap.peek()?;
            let bound = self.bounds.first().map(|(bound, _)| *bound);
            if bound.into_iter().chain(self.floor).any(|bound| bound < time) {
                return None;
            }
            self.heap.pop();
            let item = self.streams.get_mut(&stream).and_then(|fed| fed.cursor.take());
            self.advance(stream);
            let last = self.last.unwrap_or(i64::MIN);
            match item {
                Some(Item::Event(_)) if time < last => self.late += 1,
                Some(Item::Loss(mut loss)) => {
                    (loss.from_ns, loss.to_ns) = (loss.from_ns.max(last), loss.to_ns.max(last));
                    return Some(Item::Loss(loss));
                }
                Some(item @ Item::Event(_)) => {
                    self.last = Some(time);
                    return Some(item);
                }
                Some(item) => return Some(item),
                None => {}
            }
        }
    }

    /// True if all streams have ended and all items were returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Number of events left out because a later one had already been returned.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Number of packets so far without a checksum, although the tracer's packets have a place for it.
    pub(crate) fn unchecked(&self) -> u64 {
        self.unchecked + self.streams.values().map(|fed| fed.cursor.unchecked()).sum::<u64>()
    }

    /// Puts a stream that is in neither `heap` nor `bounds` into the right one.
    fn advance(&mut self, stream: u64) {
        let Some(fed) = self.streams.get_mut(&stream) else { return };
        if let Some(time) = fed.cursor.advance() {
            self.heap.push(Reverse((time, stream)));
            return;
        }
        fed.bound = fed.cursor.end().map_or(fed.bound, |end| end.max(fed.bound));
        let (bound, ended) = (fed.bound, fed.ended);
        if ended {
            self.remove(stream);
        } else {
            self.bounds.insert((bound, stream));
        }
    }

    fn remove(&mut self, stream: u64) {
        if let Some(fed) = self.streams.remove(&stream) {
            self.unchecked += fed.cursor.unchecked();
        }
    }
}
