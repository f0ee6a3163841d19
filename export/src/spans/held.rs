//! Spans that have ended, in the order of their begins, until it is known which ones are their parents.

use std::collections::{BTreeMap, HashMap};

use tracepoint_reader::Event;

use super::open::OpenSpan;
use crate::format::SpanEnd;
use crate::sources::ThreadId;

/// How a span ended.
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

/// A span that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) span: OpenSpan,
    pub(super) id: u64,
    pub(super) end: End,
    pub(super) nests: bool,
    /// The time of the last event when it ended.
    pub(super) last_ns: i64,
}

impl Waiting {
    /// Whether it is the parent of spans that are guessed to be in it.
    pub(super) fn adopts(&self) -> bool {
        self.nests && matches!(self.end, End::Event(..))
    }
}

/// The place of a span among others, when it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) root: u64,
    pub(super) path: u32,
    pub(super) adopts: bool,
}

/// A span that others may be children of.
#[derive(Debug, Default)]
struct Parent {
    children: u32,
    place: Option<Place>,
}

/// By the numbers of their begins.
#[derive(Debug, Default)]
pub(super) struct Held {
    waiting: BTreeMap<u64, Waiting>,
    parents: HashMap<u64, Parent>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.insert(waiting.span.number, waiting);
    }

    /// The first of them, if it began before the span with this number.
    pub(super) fn next_before(&mut self, undecided: Option<u64>) -> Option<Waiting> {
        let first = self.waiting.first_entry()?;
        if undecided.is_some_and(|undecided| *first.key() >= undecided) { None } else { Some(first.remove()) }
    }

    /// A span begins that may be a child of this one.
    pub(super) fn link(&mut self, parent: u64) {
        self.parents.entry(parent).or_default().children += 1;
    }

    /// That one is its child no more, or has been shown.
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

    /// Keeps the place for children, if there are any.
    pub(super) fn set_place(&mut self, number: u64, place: Place) {
        if let Some(known) = self.parents.get_mut(&number) {
            known.place = Some(place);
        }
    }
}
