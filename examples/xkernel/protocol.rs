//! The common parts of all protocols: the trace objects configured by the romfile, and counters that are appended to the traces.

use anyhow::Result;
use datatrace::{Format, TraceObject, load_options_from, tagged};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

type Counters = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// A protocol of both hosts, which trace into the same objects.
#[derive(Clone)]
pub(crate) struct Protocol {
    /// One for each line of the romfile, with or without a name. Without a line it is empty, and nothing is traced.
    traces: Vec<Arc<TraceObject>>,
    counters: Counters,
}

impl Protocol {
    /// Initializes a protocol: the romfile determines whether it is traced. `format` is the format of its entries.
    pub(crate) fn new(name: &str, format: &str, romfile: &Path, directory: &Path) -> Result<Self> {
        let counters = Counters::default();
        let format: Format = format.parse()?;
        let traces = load_options_from(romfile, name, directory)?;
        for object in &traces {
            object.insert_postamble(format.to_postamble())?;
            object.register_close_func(add_counters, Arc::clone(&counters))?;
        }
        Ok(Self { traces, counters })
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.counters.lock().expect("no panic").entry(what).or_default() += 1;
    }

    pub(crate) fn counter(&self, what: &str) -> u64 {
        self.counters.lock().expect("no panic").get(what).copied().unwrap_or_default()
    }

    /// The objects to trace into.
    pub(crate) fn traces(&self) -> impl Iterator<Item = &TraceObject> {
        self.traces.iter().map(AsRef::as_ref)
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
