//! One stream in the merge: its next item.

use std::collections::VecDeque;

use super::losses::{KnownCounters, LossFinder};
use crate::event::Event;
use crate::item::Item;
use crate::metadata::Metadata;
use crate::stream::{Step, StreamReader};

#[derive(Debug)]
pub(super) struct StreamCursor {
    reader: StreamReader,
    /// The next item if it is an event. It is not put into the queue, to avoid moving it in and out.
    event: Option<Event>,
    /// Other items that are ready, with their times.
    ready: VecDeque<(i64, Item)>,
    losses: LossFinder,
    /// The time of the last item, which is used as the time of damage.
    last: i64,
}

impl StreamCursor {
    /// `begin` is the time of the first packet, in nanoseconds since the epoch.
    pub(super) fn new(reader: StreamReader, begin: i64, before: KnownCounters) -> Self {
        let losses = LossFinder::new(begin, before);
        Self { reader, event: None, ready: VecDeque::new(), losses, last: begin }
    }

    /// Number of packets so far without a checksum.
    pub(super) fn unchecked(&self) -> u64 {
        self.reader.unchecked()
    }

    /// Adds the next packets to a stream that has no item left.
    pub(super) fn feed(&mut self, metadata: &Metadata, bytes: Vec<u8>) {
        self.reader.set_metadata(metadata);
        self.reader.feed(bytes);
    }

    /// The end of the last packet, in nanoseconds since the epoch: no later packet begins before it.
    pub(super) fn end(&self) -> Option<i64> {
        Some(self.reader.stream()?.nanoseconds(self.losses.end()?))
    }

    /// The next item, if one is ready.
    pub(super) fn take(&mut self) -> Option<Item> {
        self.event.take().map(Item::Event).or_else(|| self.ready.pop_front().map(|(_, item)| item))
    }

    /// Prepares the next item and returns its time; `None` at the end of the stream.
    pub(super) fn advance(&mut self) -> Option<i64> {
        if let Some(event) = &self.event {
            return Some(event.time_ns);
        }
        while self.ready.is_empty() {
            let Some(step) = self.reader.next() else {
                let losses = self.reader.stream().map(|stream| self.losses.finish(stream));
                self.ready.extend(losses.into_iter().flatten().map(|loss| (loss.from_ns, Item::Loss(loss))));
                break;
            };
            self.losses.pass(&step);
            match step {
                Step::Begin(packet) => {
                    if let Some(stream) = self.reader.stream() {
                        let losses = self.losses.before(stream, &packet);
                        self.ready.extend(losses.map(|loss| (loss.from_ns, Item::Loss(loss))));
                    }
                }
                Step::Event(event) => {
                    self.last = event.time_ns;
                    return Some(self.event.insert(event).time_ns);
                }
                Step::End(_) => {}
                Step::Damage(damage) => self.ready.push_back((self.last, Item::Damage(damage))),
            }
        }
        self.ready.front().map(|(time, _)| *time)
    }
}
