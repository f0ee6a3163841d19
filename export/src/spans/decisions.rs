//! Decisions about spans with guessed parents, and their effects: spans are passed on, and times are assigned.

use std::io;
use std::mem::take;

use super::open::{Guess, OpenSpan};
use super::pending::{End, PendingSpan, Place};
use super::{Key, MAX_BYTES, Output, Spans};
use crate::sources::{Sources, ThreadId};
use crate::times::TimeTree;

/// Maximum number of paths whose times are kept with open spans.
const MAX_PATHS: usize = 1 << 19;

impl Spans {
    /// Marks an open span as not nesting, as far as known: it then has no guessed parent, and is not one itself.
    pub(super) fn loosen(&mut self, number: u64, sources: &mut Sources, out: &mut impl Output) -> io::Result<()> {
        let Some(key) = self.by_number.get(&number).copied() else { return Ok(()) };
        if self.open.get(&key).is_none_or(|span| span.is_loose) {
            return Ok(());
        }
        let Some(mut span) = self.open.remove(&key) else { return Ok(()) };
        span.is_loose = true;
        self.leave_firm(&span);
        self.give_up_guess(&mut span);
        self.decide_children(&mut span, false, sources);
        self.undecided.remove(&number);
        let times = self.take_times(&mut span.guessed_times);
        if !times.is_empty() {
            out.times(sources.thread(span.thread).process, 0, times, sources)?;
        }
        self.open.insert(key, span);
        Ok(())
    }

    /// Returns whether an asynchronous span that ends on this thread is still inside its guessed parent. This is so if it ends in the span in which
    /// it began, or if the parent is a poll, wherever it ends.
    pub(super) fn is_inside_parent(&mut self, span: &OpenSpan, thread: ThreadId) -> bool {
        let Guess::Pending(parent) = span.guess else { return span.guess != Guess::None };
        let innermost = self.stacks.get(&thread).and_then(|stack| stack.last().copied());
        span.thread == thread && innermost == Some(parent)
            || self.open_by_number(parent).is_some_and(|parent| parent.is_poll)
    }

    /// Removes the guessed parent of a span, unless it is certain.
    pub(super) fn give_up_guess(&mut self, span: &mut OpenSpan) {
        if let Guess::Pending(parent) = span.guess {
            if self.needs.parents {
                self.pending.unlink(parent);
            }
            (span.guess, span.parent) = (Guess::None, None);
        }
    }

    /// Decides whether a span is the parent of the spans that are guessed to be its children.
    pub(super) fn decide_children(&mut self, span: &mut OpenSpan, adopts: bool, sources: &mut Sources) {
        for number in take(&mut span.async_children) {
            self.undecided.remove(&number);
            let Some(key) = self.by_number.get(&number).copied() else { continue };
            let Some(mut child) = self.open.remove(&key) else { continue };
            // A child that has not ended continues elsewhere. Only a poll is known to have created it.
            if adopts && span.is_poll {
                child.guess = Guess::Sure(span.number);
                if self.needs.times {
                    (child.outer_path, child.path) = (span.path, sources.path_below(span.path, &child.name));
                }
                self.guesses.parents += 1;
            } else {
                self.give_up_guess(&mut child);
            }
            self.open.insert(key, child);
        }
        if adopts {
            self.guesses.parents += span.guessed_children;
        } else {
            self.guesses.outside += span.events.drop_guessed();
        }
    }

    /// Closes a span that is given up, or still open at the end of the trace.
    pub(super) fn close(
        &mut self,
        key: Key,
        end: End,
        nests: bool,
        sources: &mut Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        let Some((_, mut span)) = self.remove(key) else { return Ok(()) };
        self.give_up_guess(&mut span);
        self.decide_children(&mut span, false, sources);
        if self.needs.times {
            self.add_times(&mut span, None, false, sources, out)?;
        }
        self.show(PendingSpan { span, id: key.1, end, nests, last_ns: self.last_ns }, sources, out)
    }

    /// Adds the time of a span to its parent's times, or passes it on if the parent has ended. A span with an unknown end has no time.
    pub(super) fn add_times(
        &mut self,
        span: &mut OpenSpan,
        end_ns: Option<i64>,
        adopts: bool,
        sources: &Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        let process = sources.thread(span.thread).process;
        let mut inside = self.take_times(&mut span.named_times);
        let guessed = self.take_times(&mut span.guessed_times);
        if adopts {
            inside.add(guessed, MAX_PATHS);
        } else if !guessed.is_empty() {
            out.times(process, 0, guessed, sources)?;
        }
        let Some(end_ns) = end_ns else {
            return if inside.is_empty() { Ok(()) } else { out.times(process, span.path, inside, sources) };
        };
        let times = TimeTree::of(&span.name, span.self_ns(end_ns, adopts), inside);
        let room = MAX_PATHS.saturating_sub(self.kept_paths);
        let open = span.parent_number().and_then(|parent| self.open_by_number(parent));
        let Some(parent) = open.filter(|_| room > 0) else {
            return out.times(process, span.outer_path, times, sources);
        };
        let kept = if span.guess == Guess::None { &mut parent.named_times } else { &mut parent.guessed_times };
        let before = kept.len();
        kept.add(times, room);
        let added = kept.len() - before;
        self.kept_paths += added;
        Ok(())
    }

    fn take_times(&mut self, times: &mut TimeTree) -> TimeTree {
        let taken = take(times);
        self.kept_paths -= taken.len();
        taken
    }

    /// Passes a span on, or keeps it until its parent is known.
    pub(super) fn show(
        &mut self,
        mut waiting: PendingSpan,
        sources: &mut Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        self.undecided.remove(&waiting.span.number);
        if !self.needs.parents {
            let inside = take(&mut waiting.span.events).together(self.needs.inside);
            let PendingSpan { span, id, end, nests, last_ns } = &waiting;
            return out.span(&span.span(*id, end.shown(), *nests, *last_ns, &inside), sources);
        }
        if let End::Event(event, _) = &waiting.end {
            waiting.span.bytes += super::size(event);
        }
        self.bytes += waiting.span.bytes;
        self.pending.push(waiting);
        self.show_decided(sources, out)
    }

    /// Passes on the waiting spans that began before the first undecided one.
    pub(super) fn show_decided(&mut self, sources: &mut Sources, out: &mut impl Output) -> io::Result<()> {
        while let Some(mut waiting) = self.pending.next_before(self.undecided.first().copied()) {
            let adopts = waiting.adopts();
            let PendingSpan { span, id, end, nests, last_ns } = &mut waiting;
            let linked = span.parent_number();
            let parent = linked.and_then(|parent| self.place(parent, sources));
            let parent = parent.filter(|parent| span.guess == Guess::None || parent.adopts);
            if span.guess != Guess::None && parent.is_none() {
                (span.guess, span.parent) = (Guess::None, None);
            }
            let root = parent.map_or(span.parent.unwrap_or(*id), |parent| parent.root);
            let path = sources.path_below(parent.map_or(0, |parent| parent.path), &span.name);
            self.pending.set_place(span.number, Place { root, path, adopts });
            if let Some(parent) = linked {
                self.pending.unlink(parent);
            }
            self.bytes -= span.bytes;
            let inside = take(&mut span.events).together(self.needs.inside);
            let mut shown = span.span(*id, end.shown(), *nests, *last_ns, &inside);
            (shown.root, shown.path) = (root, path);
            out.span(&shown, sources)?;
        }
        Ok(())
    }

    /// The place of a span that has been passed on, or is open and decided.
    fn place(&mut self, number: u64, sources: &mut Sources) -> Option<Place> {
        let (mut open, mut at) = (Vec::new(), Some(number));
        let mut place = None;
        while let Some(number) = at {
            place = self.pending.place(number);
            if place.is_some() {
                break;
            }
            let key = self.by_number.get(&number).copied()?;
            open.push(key);
            at = self.open.get(&key)?.parent_number();
        }
        for key in open.into_iter().rev() {
            let span = self.open.get(&key)?;
            let root = place.map_or(span.parent.unwrap_or(key.1), |above| above.root);
            let path = sources.path_below(place.map_or(0, |above| above.path), &span.name);
            let found = Place { root, path, adopts: false };
            self.pending.set_place(span.number, found);
            place = Some(found);
        }
        place
    }

    /// Reduces open and waiting spans to their limits.
    pub(super) fn make_room(&mut self, sources: &mut Sources, out: &mut impl Output) -> io::Result<()> {
        while self.open.len() > self.max_open || self.bytes > MAX_BYTES {
            if self.bytes > MAX_BYTES
                && !self.pending.is_empty()
                && let Some(oldest) = self.undecided.first().copied()
            {
                self.guesses.given_up += 1;
                self.loosen(oldest, sources, out)?;
                self.show_decided(sources, out)?;
            } else if let Some(oldest) = self.by_number.values().next().copied() {
                self.close(oldest, End::Forgotten, false, sources, out)?;
            } else {
                break;
            }
        }
        Ok(())
    }
}
