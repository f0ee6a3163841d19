//! What the agent knows of its process.

use crate::app::{ApplicationInfo, TracepointInfo, describe_tracepoints};
use crate::catalog::Catalog;
use crate::event::{PlannedEvent, all_events};
use crate::process::{ProcessKey, trace_name};
use crate::state::registered;
use std::path::PathBuf;

/// The process, and the events that can be recorded in it.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) info: ApplicationInfo,
    /// The name of its entry, and of its acknowledgements.
    pub(super) entry: String,
    /// The absolute path of the sessions.
    pub(super) sessions: PathBuf,
    pub(super) events: Vec<PlannedEvent>,
    /// What of the program is in `events`, and elsewhere: it stays loaded.
    pub(super) catalog: Catalog,
    /// Whether the agent has looked at the sessions that were there at its start.
    pub(super) has_begun: bool,
}

impl Context {
    /// Looks at the process.
    pub(super) fn new(info: ApplicationInfo, entry: String, sessions: PathBuf) -> Self {
        let catalog = Catalog::new();
        let events = events_of(&catalog);
        Self { info, entry, sessions, events, catalog, has_begun: false }
    }

    /// Looks whether objects were loaded, or unloaded, since: what can be recorded now, if it may be something else.
    pub(super) fn look_again(&mut self) -> Option<Vec<TracepointInfo>> {
        if !self.catalog.is_old() {
            return None;
        }
        self.catalog = Catalog::new();
        self.events = events_of(&self.catalog);
        Some(describe_tracepoints(&self.catalog))
    }

    /// With how many rings a recording begins: one for each thread that there is, where the agent's is for the next one to come, and for
    /// each state dump. A program that begins has its threads before it.
    pub(super) fn rings_at_first(&self) -> usize {
        let threads = || Some(std::fs::read_dir("/proc/self/task").ok()?.count());
        self.has_begun.then(threads).flatten().map_or(usize::MAX, |threads| threads + registered(0).len())
    }

    pub(super) fn key(&self) -> ProcessKey {
        self.info.key()
    }

    /// The name of this process's trace in a directory of many: its program and itself.
    pub(super) fn trace_name(&self) -> String {
        trace_name(&self.info.name, &self.entry)
    }
}

fn events_of(catalog: &Catalog) -> Vec<PlannedEvent> {
    all_events(catalog.markers(), &mut Vec::new())
}
