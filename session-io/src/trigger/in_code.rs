//! The triggers of sessions that programs start in code.
//!
//! Such a session has no `session.toml`. Its process writes its triggers into `triggers.toml` next to its rings, and the states are in
//! `triggers/` there; both are removed with the rings. A trigger belongs to that process: it takes a snapshot of this process's rings, when
//! any process dumps core while this one lives, or when this one has dumped core and died.

use crate::store::SessionStore;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::layout::{RINGS, TRIGGERS_FILE};
use tracepoint_run_dir::lock::is_locked;
use tracepoint_run_dir::private_dir::{Author, PrivateDir};
use tracepoint_session_spec::{SessionSpec, TriggerSpec};

/// The triggers of a process in a session.
#[derive(Debug)]
pub struct ProcessTriggers {
    /// The name of the session.
    pub session: String,
    /// The process.
    pub process: ProcessKey,
    /// The directory of its rings.
    pub dir: PrivateDir,
    /// The author of the triggers.
    pub(super) author: Author,
    /// Its triggers.
    pub triggers: Vec<TriggerSpec>,
}

impl ProcessTriggers {
    /// Returns whether the process lives.
    pub(super) fn is_alive(&self) -> bool {
        is_locked(&self.dir).unwrap_or(true)
    }
}

/// Returns the triggers of all processes, including dead ones. Files that cannot be read are left out.
pub fn all(store: &SessionStore) -> impl Iterator<Item = ProcessTriggers> + '_ {
    store.session_dirs().flat_map(|(session, dir)| {
        let rings = dir.open_subdir(RINGS).ok();
        let names = rings.as_ref().and_then(|rings| rings.names().ok()).unwrap_or_default();
        names.into_iter().filter_map(move |name| {
            let process = ProcessKey::of_directory(&name)?;
            let dir = rings.as_ref()?.open_subdir(&name).ok()?;
            let (bytes, author) = dir.read_authored(TRIGGERS_FILE, SessionSpec::MAX_SIZE).ok()?;
            let author = author.for_session(&format!("{session}/{name}"), || SessionSpec::written_for(&bytes));
            Some(ProcessTriggers {
                session: session.clone(),
                process,
                dir,
                author,
                triggers: SessionSpec::parse_triggers(&bytes)?,
            })
        })
    })
}
