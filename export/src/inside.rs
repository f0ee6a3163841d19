//! Which threads are inside selected spans.

use std::collections::HashMap;
use std::fmt;

use tracepoint_reader::{Event, SpanPart, Value};

use crate::sources::{Sources, ThreadId};

/// Maximum number of open spans. Further ones are ignored.
const MAX_OPEN: usize = 1 << 18;

/// A thread of any trace: its host, and its id.
type Key = (Option<String>, Option<u64>);

/// Selected names of spans.
pub(crate) struct NameSelection(Box<dyn Fn(&str) -> bool>);

impl NameSelection {
    pub(crate) fn new(select: impl Fn(&str) -> bool + 'static) -> Self {
        Self(Box::new(select))
    }

    /// Returns whether the name of a span is selected, or that of the asynchronous span of which it is a poll.
    pub(crate) fn selects(&self, name: &str) -> bool {
        (self.0)(name) || name.strip_suffix("_poll").is_some_and(&self.0)
    }
}

impl fmt::Debug for NameSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameSelection")
    }
}

/// The open spans with selected names.
#[derive(Debug)]
pub(crate) struct SelectedSpans {
    select: NameSelection,
    /// Whether spans of a name are selected: synchronous ones, and the polls of asynchronous ones.
    names: HashMap<String, bool>,
    /// The thread of each, by process and id.
    open: HashMap<(u32, u64), Key>,
    /// The number of them.
    inside: HashMap<Key, u64>,
}

impl SelectedSpans {
    pub(crate) fn new(select: NameSelection) -> Self {
        Self { select, names: HashMap::new(), open: HashMap::new(), inside: HashMap::new() }
    }

    pub(crate) fn is_inside(&self, thread: ThreadId, sources: &Sources) -> bool {
        self.inside.get(&key(thread, sources)).is_some_and(|count| *count > 0)
    }

    /// Notes the begin or the end of a span.
    pub(crate) fn add(&mut self, event: &Event, part: SpanPart, thread: ThreadId, sources: &Sources) {
        let Some((name, _)) = event.class.span() else { return };
        let Some(id) = span_id(event) else { return };
        let id = (sources.thread(thread).process, id);
        if part == SpanPart::End {
            if let Some(count) = self.open.remove(&id).and_then(|key| self.inside.get_mut(&key)) {
                *count -= 1;
            }
            return;
        }
        let select = &self.select;
        let is_selected =
            *self.names.entry(name.to_owned()).or_insert_with(|| select.selects(name) && !has_polls(event, name));
        if is_selected && self.open.len() < MAX_OPEN {
            let key = key(thread, sources);
            *self.inside.entry(key.clone()).or_default() += 1;
            self.open.insert(id, key);
        }
    }
}

fn key(thread: ThreadId, sources: &Sources) -> Key {
    (sources.process_of(thread).host.clone(), sources.thread(thread).tid)
}

/// The id of the span that an event begins or ends.
pub(crate) fn span_id(event: &Event) -> Option<u64> {
    event.fields.as_ref()?.get("span_id").and_then(Value::as_u64)
}

/// Returns whether the polls of a span are spans themselves.
pub(crate) fn has_polls(event: &Event, name: &str) -> bool {
    let polls = format!("{name}_poll_begin");
    event.stream.metadata.streams().flat_map(|class| class.events.values()).any(|class| class.name == polls)
}
