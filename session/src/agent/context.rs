//! The process of the agent and its recordable events.

use super::SINK_TIMEOUT;
use super::current_errors::Attempts;
use super::description::describe_tracepoints;
use super::recordings::Recordings;
use crate::catalog::{Catalog, later_events};
use crate::event::{PlannedEvent, Program, all_events};
use crate::session::{RecordingSettings, RunningSession};
use crate::session_dirs::SessionDirs;
use crate::state::{self, registered};
use std::path::PathBuf;
use std::sync::Arc;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::app::{ApplicationInfo, TracepointInfo};
use tracepoint_run_dir::layout::SESSIONS;
use tracepoint_run_dir::own_process::{thread_count, trace_name};
use tracepoint_session_spec::SessionSpec;

/// Number of threads for which a starting program gets rings.
const FIRST_THREADS: usize = 4;

/// The process, and the events that can be recorded in it.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) info: ApplicationInfo,
    /// The name of the process's entry in `apps`, and of its acknowledgements.
    pub(super) entry: String,
    /// The absolute path of the run directory.
    pub(super) run_dir: PathBuf,
    pub(super) events: Vec<PlannedEvent>,
    /// Keeps the objects that declare `events` loaded.
    pub(super) catalog: Catalog,
    /// The running recordings, for [`Agent`](super::Agent).
    pub(super) recordings: Arc<Recordings>,
    /// True if the agent has applied the sessions that existed at its start.
    pub(super) initial_scan_done: bool,
    /// The attempts to apply sessions that have failed before.
    pub(super) attempts: Attempts,
}

impl Context {
    /// Collects the events of this process.
    pub(super) fn new(info: ApplicationInfo, entry: String, run_dir: PathBuf) -> Self {
        let catalog = Catalog::new();
        let events = events_of(&catalog);
        let recordings = Arc::default();
        let attempts = Attempts::default();
        Self { info, entry, run_dir, events, catalog, recordings, initial_scan_done: false, attempts }
    }

    /// Collects the events again if objects were loaded or unloaded since the last time; returns the new description, or `None` if nothing
    /// changed.
    pub(super) fn refresh(&mut self) -> Option<Vec<TracepointInfo>> {
        if !self.catalog.is_old() {
            return None;
        }
        self.catalog = Catalog::new();
        self.events = events_of(&self.catalog);
        Some(describe_tracepoints(&self.catalog))
    }

    /// Returns the number of rings that a recording allocates at its start: one for each existing thread (the agent's own counts for the
    /// next new thread) and one for each state dump. Unused rings release their memory.
    pub(super) fn initial_rings(&self) -> usize {
        // During the agent's start, the program has not started its threads yet.
        let least = if self.initial_scan_done { 1 } else { FIRST_THREADS };
        thread_count().unwrap_or(1).max(least) + registered(0).len()
    }

    /// Returns the number of events for which a recording has counters.
    pub(super) fn event_capacity(&self) -> usize {
        self.events.len() + state::EVENTS + later_events()
    }

    pub(super) fn key(&self) -> ProcessKey {
        self.info.key()
    }

    pub(super) fn program(&self) -> Program<'_> {
        Program { key: self.key(), executable: &self.info.executable, events: &self.events }
    }

    /// The directory of the session called `name`.
    pub(super) fn session_dir(&self, name: &str) -> PathBuf {
        self.run_dir.join(SESSIONS).join(name)
    }

    /// A session without a recording.
    pub(super) fn session(&self, name: &str) -> RunningSession {
        let (run_dir, session) = (Some(self.run_dir.clone()), self.session_dir(name));
        RunningSession::new(name.to_owned(), None, Some(SessionDirs { run_dir, session, process: self.entry.clone() }))
    }

    /// The settings of a recording for the session called `name`.
    pub(super) fn settings(&self, name: &str, spec: SessionSpec) -> RecordingSettings {
        let mut settings = RecordingSettings::new(name.to_owned(), spec);
        settings.place.set_dir(self.session_dir(name));
        settings.sink_timeout = Some(SINK_TIMEOUT);
        settings
    }

    /// Returns the name of this process's trace in a directory of several traces: the program's name and the entry's.
    pub(super) fn trace_name(&self) -> String {
        trace_name(&self.info.name, &self.entry)
    }
}

fn events_of(catalog: &Catalog) -> Vec<PlannedEvent> {
    all_events(catalog.markers(), &mut Vec::new())
}
