//! Which threads are inside selected spans.

use std::collections::HashMap;
use std::fmt;

use tracepoint_reader::{Event, SpanPart, Value};

use crate::sources::{Sources, ThreadId};

/// Maximum number of open spans. Further ones are ignored.
const MAX_OPEN: usize = 1 << 18;

/// A thread of any trace: its host, and its id.
type Key = (Option<String>, Option<u64>);

/// The open spans with selected names.
pub(crate) struct SelectedSpans {
    select: Box<dyn Fn(&str) -> bool>,
    /// Whether spans of a name are selected: synchronous ones, and the polls of asynchronous ones.
    names: HashMap<String, bool>,
    /// The thread of each, by process and id.
    open: HashMap<(u32, u64), Key>,
    /// The number of them.
    inside: HashMap<Key, u64>,
}

impl fmt::Debug for SelectedSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedSpans").field("open", &self.open).finish_non_exhaustive()
    }
}

impl SelectedSpans {
    pub(crate) fn new(select: Box<dyn Fn(&str) -> bool>) -> Self {
        Self { select, names: HashMap::new(), open: HashMap::new(), inside: HashMap::new() }
    }

    pub(crate) fn is_inside(&self, thread: ThreadId, sources: &Sources) -> bool {
        self.inside.get(&key(thread, sources)).is_some_and(|count| *count > 0)
    }

    /// Notes the begin or the end of a span.
    pub(crate) fn add(&mut self, event: &Event, part: SpanPart, thread: ThreadId, sources: &Sources) {
        let Some((name, _)) = event.class.span() else { return };
        let Some(id) = event.fields.as_ref().and_then(|fields| fields.get("span_id")).and_then(Value::as_u64) else {
            return;
        };
        let id = (sources.thread(thread).process, id);
        if part == SpanPart::End {
            if let Some(count) = self.open.remove(&id).and_then(|key| self.inside.get_mut(&key)) {
                *count -= 1;
            }
            return;
        }
        let select = &self.select;
        let is_selected = *self.names.entry(name.to_owned()).or_insert_with(|| match name.strip_suffix("_poll") {
            Some(whole) => select(whole) || select(name),
            None => select(name) && !has_polls(event, name),
        });
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

fn has_polls(event: &Event, name: &str) -> bool {
    let polls = format!("{name}_poll_begin");
    event.stream.metadata.streams().flat_map(|class| class.events.values()).any(|class| class.name == polls)
}
