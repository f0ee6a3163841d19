//! The time in which threads did not run, by the spans that were open on them, and by cause.
//!
//! Each thread has a stack of its open spans. While a thread does not run, its stack does not change, so the whole wait belongs to one stack. The waits
//! inside a span therefore add up to the division of its time by `Why`. An asynchronous span is in the stack while it is polled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tracepoint_reader::{Event, SpanPart};

use crate::format::{LossReport, Summary};
use crate::inside::{NameSelection, has_polls, span_id};
use crate::samples::MAPPING;
use crate::sources::{Sources, ThreadId};
use crate::waits::{Cause, Key, Period, ThreadPeriod, Waits};

/// Maximum number of open spans. Further ones are ignored.
const MAX_OPEN: usize = 1 << 18;
/// Maximum number of different stacks of spans. The time in further ones is summed up.
const MAX_STACKS: usize = 1 << 17;
/// Maximum number of open spans of a thread. Further ones are ignored: the end of a span can move all that are above it to other stacks.
const MAX_DEPTH: usize = 512;
/// Maximum number of different stacks of spans, causes and system calls. The time of further ones is summed up.
const MAX_ROWS: usize = 1 << 18;
/// The frame of the time in no span.
const NO_SPAN: &str = "[no span]";
/// The stack in place of further ones with a selected span.
const FURTHER: u32 = 1;

/// An open span: its process and its id, its name, and the stack that ends with it.
#[derive(Debug)]
struct Open {
    id: (u32, u64),
    name: Arc<str>,
    stack: u32,
}

/// A stack of spans: the stack without its last span, and the name of that one.
#[derive(Debug)]
struct Stack {
    outer: u32,
    name: Arc<str>,
    /// True if one of its spans is selected.
    is_selected: bool,
}

/// A row of the result: a process, a stack of spans, a cause, and a system call.
type Row = (u32, u32, Cause, Option<Arc<str>>);

/// The waits of threads by their spans.
#[derive(Debug)]
pub(crate) struct OffCpu {
    waits: Waits,
    select: Option<NameSelection>,
    /// The names of spans; `None` for an asynchronous one, whose polls are in stacks instead.
    names: HashMap<String, Option<Arc<str>>>,
    open: HashMap<Key, Vec<Open>>,
    /// The threads of the open spans.
    threads: HashMap<(u32, u64), Key>,
    /// The first one is the empty one, the second one [`FURTHER`].
    stacks: Vec<Stack>,
    known: HashMap<(u32, Arc<str>), u32>,
    rows: HashMap<Row, u64>,
    more: u64,
    /// The number of spans that are ignored.
    left_out: u64,
    last_ns: i64,
}

impl OffCpu {
    /// Sums the waits of all times, or of the times inside spans with selected names.
    pub(crate) fn new(select: Option<NameSelection>) -> Self {
        let empty = |is_selected| Stack { outer: 0, name: "".into(), is_selected };
        Self {
            waits: Waits::of_states(),
            names: HashMap::new(),
            open: HashMap::new(),
            threads: HashMap::new(),
            stacks: vec![empty(select.is_none()), empty(true)],
            known: HashMap::new(),
            select,
            rows: HashMap::new(),
            more: 0,
            left_out: 0,
            last_ns: 0,
        }
    }

    /// Processes an event that is not the begin or end of a span.
    pub(crate) fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) {
        // Code was mapped before its event.
        if event.name() == MAPPING {
            return;
        }
        self.last_ns = self.last_ns.max(event.time_ns);
        let key = self.waits.key(thread, sources);
        let changed = self.waits.note(event, key, thread, sources).unwrap_or_else(|| {
            self.waits.runs_at(key, event.time_ns);
            key
        });
        self.take(changed, sources);
    }

    /// Processes the begin or the end of a span.
    pub(crate) fn span_event(&mut self, event: &Event, part: SpanPart, thread: ThreadId, sources: &Sources) {
        self.last_ns = self.last_ns.max(event.time_ns);
        let key = self.waits.key(thread, sources);
        self.waits.runs_at(key, event.time_ns);
        self.take(key, sources);
        let Some((name, _)) = event.class.span() else { return };
        let Some(id) = span_id(event) else { return };
        let id = (sources.thread(thread).process, id);
        // An id that is used again: the end of the span before is missing.
        self.close(id);
        if part != SpanPart::Begin {
            return;
        }
        let Some(name) = self.name(event, name) else { return };
        if self.open.get(&key).and_then(|open| open.first()).is_some_and(|first| first.id.0 != id.0) {
            // The thread has the id of one that has ended.
            self.close_all(key);
        }
        if self.threads.len() >= MAX_OPEN || self.open.get(&key).is_some_and(|open| open.len() >= MAX_DEPTH) {
            self.left_out += 1;
            return;
        }
        let stack = self.stack_below(self.stack_of(key), &name);
        self.open.entry(key).or_default().push(Open { id, name, stack });
        self.threads.insert(id, key);
        self.waits.tag(key, stack);
    }

    /// Processes a loss of the kernel's events, or of a thread's events: then its spans may have ended.
    pub(crate) fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) {
        if self.waits.lost(loss.thread, sources, loss.loss.from_ns, loss.loss.to_ns) {
            for period in self.waits.take_collected() {
                self.add(period, sources);
            }
            return;
        }
        let key = self.waits.key(loss.thread, sources);
        self.close_all(key);
    }

    /// Adds what is left out to the counts of an export.
    pub(crate) fn count(&self, summary: &mut Summary) {
        summary.spans_left_out = self.left_out;
        summary.has_further_threads = self.waits.has_further_threads();
    }

    /// Ends the trace. Returns the frames below each process with their times in nanoseconds, and the time of further ones.
    pub(crate) fn finish(&mut self, sources: &Sources) -> (BTreeMap<(u32, Vec<&str>), u64>, u64) {
        for period in self.waits.take_rest(self.last_ns) {
            self.add(period, sources);
        }
        let mut all: BTreeMap<_, u64> = BTreeMap::new();
        for ((process, stack, cause, call), time) in &self.rows {
            let mut frames = vec![cause.name()];
            frames.extend(call.as_deref());
            *all.entry((*process, [self.names(*stack), frames].concat())).or_default() += time;
        }
        (all, self.more)
    }

    fn names(&self, mut stack: u32) -> Vec<&str> {
        let mut names = Vec::new();
        while stack != 0 {
            let Stack { outer, name, .. } = &self.stacks[stack as usize];
            names.push(&**name);
            stack = *outer;
        }
        if names.is_empty() {
            names.push(NO_SPAN);
        }
        names.reverse();
        names
    }

    fn take(&mut self, changed: Key, sources: &Sources) {
        for period in self.waits.take(changed) {
            self.add(period, sources);
        }
    }

    fn add(&mut self, ThreadPeriod { thread, period, .. }: ThreadPeriod, sources: &Sources) {
        let Period { from, to, cause, call, tag, .. } = period;
        if matches!(cause, Cause::Running | Cause::Unknown) || !self.stacks[tag as usize].is_selected {
            return;
        }
        let time = from.abs_diff(to);
        if tag == FURTHER {
            self.more = self.more.saturating_add(time);
            return;
        }
        let row = (sources.thread(thread).process, tag, cause, call);
        if let Some(sum) = self.rows.get_mut(&row) {
            *sum = sum.saturating_add(time);
        } else if self.rows.len() < MAX_ROWS {
            self.rows.insert(row, time);
        } else {
            self.more = self.more.saturating_add(time);
        }
    }

    /// The name of a span that begins; `None` if it is asynchronous.
    fn name(&mut self, event: &Event, name: &str) -> Option<Arc<str>> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let shared = (!has_polls(event, name)).then(|| name.into());
        self.names.insert(name.to_owned(), shared.clone());
        shared
    }

    fn stack_of(&self, key: Key) -> u32 {
        self.open.get(&key).and_then(|open| open.last()).map_or(0, |open| open.stack)
    }

    /// The stack with one more span.
    fn stack_below(&mut self, outer: u32, name: &Arc<str>) -> u32 {
        let is_selected = self.stacks[outer as usize].is_selected;
        if outer == FURTHER {
            return FURTHER;
        }
        if let Some(known) = self.known.get(&(outer, Arc::clone(name))) {
            return *known;
        }
        let is_selected = is_selected || self.select.as_ref().is_some_and(|select| select.selects(name));
        if self.stacks.len() >= MAX_STACKS {
            return if is_selected { FURTHER } else { outer };
        }
        let stack = self.stacks.len() as u32;
        self.stacks.push(Stack { outer, name: Arc::clone(name), is_selected });
        self.known.insert((outer, Arc::clone(name)), stack);
        stack
    }

    /// Takes all spans out of the stack of a thread.
    fn close_all(&mut self, key: Key) {
        for open in self.open.remove(&key).into_iter().flatten() {
            self.threads.remove(&open.id);
        }
        self.waits.tag(key, 0);
    }

    /// Takes a span out of the stack of its thread. Those above it remain.
    fn close(&mut self, id: (u32, u64)) {
        let Some(key) = self.threads.remove(&id) else { return };
        let Some(open) = self.open.get_mut(&key) else { return };
        let Some(at) = open.iter().rposition(|open| open.id == id) else { return };
        open.remove(at);
        let above = open.split_off(at);
        if open.is_empty() && above.is_empty() {
            self.open.remove(&key);
        }
        for Open { id, name, .. } in above {
            let stack = self.stack_below(self.stack_of(key), &name);
            self.open.entry(key).or_default().push(Open { id, name, stack });
        }
        self.waits.tag(key, self.stack_of(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_further_stacks_is_not_in_their_outer_one() {
        for (select, outside) in [(None, FURTHER), (Some("last"), 0)] {
            let mut all = OffCpu::new(select.map(|one| NameSelection::new(move |name| name == one)));
            for number in 0..MAX_STACKS {
                all.stack_below(0, &format!("{number}").into());
            }
            assert_eq!(all.stacks.len(), MAX_STACKS);
            assert_eq!((all.stack_below(0, &"last".into()), all.stack_below(0, &"other".into())), (FURTHER, outside));
            assert_eq!(all.stack_below(FURTHER, &"other".into()), FURTHER);
        }
    }
}
