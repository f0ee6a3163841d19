//! What every protocol has: the trace object that the romfile gives it, and counters that end up behind its trace.

use anyhow::Result;
use datatrace::{Format, TraceObject, get_trace_object, load_options_from, tagged};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

type Counters = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// A protocol of both hosts: they trace into one object.
#[derive(Clone)]
pub(crate) struct Protocol {
    /// Without a line in the romfile there is none, and nothing is traced.
    trace: Option<Arc<TraceObject>>,
    counters: Counters,
}

impl Protocol {
    /// What the initialization of a protocol does: it asks the romfile whether it is traced. `format` is what its entries have.
    pub(crate) fn new(name: &str, format: &str, romfile: &Path, directory: &Path) -> Result<Self> {
        let counters = Counters::default();
        let format: Format = format.parse()?;
        for object in load_options_from(romfile, name, directory)? {
            object.insert_postamble(format.to_postamble())?;
            object.register_close_func(add_counters, Arc::clone(&counters))?;
        }
        Ok(Self { trace: get_trace_object(&format!("{name}_trace")), counters })
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.counters.lock().expect("no panic").entry(what).or_default() += 1;
    }

    pub(crate) fn counter(&self, what: &str) -> u64 {
        self.counters.lock().expect("no panic").get(what).copied().unwrap_or_default()
    }

    /// The object to trace into.
    pub(crate) fn trace(&self) -> Option<&TraceObject> {
        self.trace.as_deref()
    }
}

/// The close function: appends the counters as a postamble to the trace.
#[allow(clippy::needless_pass_by_value)] // It is the argument that was registered.
fn add_counters(object: &TraceObject, counters: Counters) {
    let mut text = String::new();
    for (what, count) in &*counters.lock().expect("no panic") {
        writeln!(text, "{what} {count}").expect("a text grows");
    }
    if let Err(error) = object.append_postamble(tagged(*b"cntr", text.as_bytes())) {
        eprintln!("{error}");
    }
}
