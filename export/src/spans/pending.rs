//! Ended spans, in the order of their begins, that wait until their parents are known.

use std::collections::{BTreeMap, HashMap};

use tracepoint_reader::Event;

use super::open::OpenSpan;
use crate::format::SpanEnd;
use crate::sources::ThreadId;

/// The end of a span.
#[derive(Debug)]
pub(super) enum End {
    Event(Box<Event>, ThreadId),
    Open,
    Forgotten,
}

impl End {
    pub(super) fn shown(&self) -> SpanEnd<'_> {
        match self {
            Self::Event(event, thread) => SpanEnd::Ended(event, *thread),
            Self::Open => SpanEnd::Open,
            Self::Forgotten => SpanEnd::Forgotten,
        }
    }
}

/// An ended span that waits for a decision.
#[derive(Debug)]
pub(super) struct PendingSpan {
    pub(super) span: OpenSpan,
    pub(super) id: u64,
    pub(super) end: End,
    pub(super) nests: bool,
    /// Time of the last event of the trace when the span ended.
    pub(super) last_ns: i64,
}

impl PendingSpan {
    /// Returns whether it is the parent of the spans that are guessed to be its children.
    pub(super) fn adopts(&self) -> bool {
        self.nests && matches!(self.end, End::Event(..))
    }
}

/// The position of a span among the others, once known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) root: u64,
    pub(super) path: u32,
    pub(super) adopts: bool,
}

/// A span that may have children.
#[derive(Debug, Default)]
struct Parent {
    children: u32,
    place: Option<Place>,
}

/// Waiting spans and their possible parents, by begin number.
#[derive(Debug, Default)]
pub(super) struct PendingSpans {
    waiting: BTreeMap<u64, PendingSpan>,
    parents: HashMap<u64, Parent>,
}

impl PendingSpans {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, waiting: PendingSpan) {
        self.waiting.insert(waiting.span.number, waiting);
    }

    /// Takes the first waiting span, if it began before the span with this number.
    pub(super) fn next_before(&mut self, undecided: Option<u64>) -> Option<PendingSpan> {
        let first = self.waiting.first_entry()?;
        if undecided.is_some_and(|undecided| *first.key() >= undecided) { None } else { Some(first.remove()) }
    }

    /// Registers a span that begins as a possible child of `parent`.
    pub(super) fn link(&mut self, parent: u64) {
        self.parents.entry(parent).or_default().children += 1;
    }

    /// Unregisters a possible child: it has another parent, or has been passed on.
    pub(super) fn unlink(&mut self, parent: u64) {
        if let Some(known) = self.parents.get_mut(&parent) {
            known.children -= 1;
            if known.children == 0 {
                self.parents.remove(&parent);
            }
        }
    }

    pub(super) fn place(&self, number: u64) -> Option<Place> {
        self.parents.get(&number)?.place
    }

    /// Keeps the place of a span for its children, if there are any.
    pub(super) fn set_place(&mut self, number: u64, place: Place) {
        if let Some(known) = self.parents.get_mut(&number) {
            known.place = Some(place);
        }
    }
}
