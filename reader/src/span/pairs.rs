//! Finds the beginning of each span that ends, among events in the order of their times.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::SpanPart;
use crate::event::Event;
use crate::value::Value;

/// What an event is for the spans of a trace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Paired {
    /// It is of no span.
    None,
    /// It begins a span.
    Begin,
    /// It ends the span that this event began; `None`: an unknown one, which is counted as [`SpanCounts::unmatched`].
    End(Option<Box<Event>>),
}

/// What became of the spans. Beginnings are `whole` + `replaced` + `no_room` + those that are [open](SpanPairs::into_open); ends are `whole` +
/// `unmatched`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanCounts {
    /// Spans with both ends.
    pub whole: u64,
    /// Ends without a beginning: of spans that began before the recording, while they were off, among lost events, or without room here.
    pub unmatched: u64,
    /// Beginnings that were forgotten because a span with the same id began.
    pub replaced: u64,
    /// Beginnings for which there was no room.
    pub no_room: u64,
}

/// Spans that have begun, of all processes of a trace, until they end.
///
/// A span is known by the UUID of its trace, which each process has of its own, and its id. Chunks of one trace share the UUID. An end whose
/// name is not that of the beginning is unmatched, and the beginning stays.
#[derive(Debug)]
pub struct SpanPairs {
    /// By the UUID of the trace, all zeroes without one, and the id.
    open: HashMap<([u8; 16], u64), Box<Event>>,
    most: usize,
    counts: SpanCounts,
}

impl SpanPairs {
    /// No spans yet; at most `most` may be open at a time. Each takes the memory of its first event.
    pub fn new(most: usize) -> Self {
        Self { open: HashMap::new(), most, counts: SpanCounts::default() }
    }

    /// Takes the next event. The first event of a span is kept as a copy.
    pub fn take(&mut self, event: &Event) -> Paired {
        let Some((name, part)) = event.class.span() else { return Paired::None };
        let id = event.fields.as_ref().and_then(|fields| fields.get("span_id")).and_then(Value::as_u64);
        let Some(id) = id else { return Paired::None };
        let key = (event.stream.metadata.uuid().unwrap_or_default(), id);
        match part {
            SpanPart::Begin => {
                let has_room = self.open.len() < self.most;
                match self.open.entry(key) {
                    Entry::Occupied(mut open) => {
                        open.insert(Box::new(event.clone()));
                        self.counts.replaced += 1;
                    }
                    Entry::Vacant(open) if has_room => drop(open.insert(Box::new(event.clone()))),
                    Entry::Vacant(_) => self.counts.no_room += 1,
                }
                Paired::Begin
            }
            SpanPart::End => {
                let is_same = |begin: &Event| begin.class.span().is_some_and(|(begun, _)| begun == name);
                let begin = match self.open.entry(key) {
                    Entry::Occupied(open) if is_same(open.get()) => Some(open.remove()),
                    _ => None,
                };
                *(if begin.is_some() { &mut self.counts.whole } else { &mut self.counts.unmatched }) += 1;
                Paired::End(begin)
            }
        }
    }

    /// What became of the spans so far.
    pub fn counts(&self) -> SpanCounts {
        self.counts
    }

    /// The first events of the spans that have not ended, in the order of their times.
    pub fn into_open(self) -> Vec<Event> {
        let mut open: Vec<_> = self.open.into_values().map(|event| *event).collect();
        open.sort_by_key(|event| event.time_ns);
        open
    }
}
