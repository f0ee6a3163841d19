//! Sessions: from the rules to the recording, and to its account.

mod builder;
mod channels;
mod ending;
mod error;
mod live;
mod output_list;
mod recording;
mod rings;
mod sink_source;
mod start_guard;
mod status;

pub use builder::SessionBuilder;
pub(crate) use builder::check_name;
pub(crate) use ending::Ending;
pub use error::{SessionError, SinkFailure};
pub(crate) use recording::Recording;
pub use sink_source::SinkSource;
pub use status::{Status, Summary};

use crate::drain_thread::shared::SharedDrain;
use crate::notice::Notice;
use crate::rule_match::Matcher;
use crate::spec::SessionSpec;
use crate::state::StateDumpStatus;
use std::fmt;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recording that runs. [`Session::stop`] ends it and gives the account; dropping it ends it too.
///
/// A child that is forked from the process has no part in the session: what it fires is not recorded, and `stop` and drop do
/// nothing there.
///
/// The rings are files in the session's directory, unless they are [in memory](SessionBuilder::in_memory). When the session
/// ends, they are removed; when the process is killed, or ends by `process::exit` without `stop`, they stay, with all that was
/// committed.
///
/// Packets go to the sinks when they are full, or half a second old, and all of them when the session ends; those of flight recorders
/// only then. `stop` waits for the sinks: one that blocks for ever blocks it, too.
///
/// Inside a probe a session cannot be waited for: `stop` and all that changes a session refuse there, and a session that is dropped there is
/// ended by a thread of its own, soon after.
pub struct Session {
    name: String,
    /// The process that started it.
    process: u32,
    notices: Vec<Notice>,
    drain: Option<Arc<SharedDrain>>,
    active: Arc<Mutex<Active>>,
}

/// A session's description, and what was made of it.
struct Active {
    spec: SessionSpec,
    matcher: Matcher,
    /// `None` once it has stopped.
    recording: Option<Recording>,
}

impl Session {
    /// Begins the description of a session called `name`: 1 to 255 bytes, without `/` and NUL, not starting with a dot.
    pub fn builder(name: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(name.into())
    }

    fn new(mut recording: Recording, spec: SessionSpec, matcher: Matcher) -> Self {
        let notices = std::mem::take(&mut recording.notices);
        Self {
            name: recording.name().to_owned(),
            process: recording.process(),
            notices,
            drain: recording.drain(),
            active: Arc::new(Mutex::new(Active { spec, matcher, recording: Some(recording) })),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the session does differently from what its description suggests.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Its description, as it is now. Sinks that are objects stand in it by their names.
    pub fn spec(&self) -> SessionSpec {
        if self.is_ours() { self.lock().spec.clone() } else { SessionSpec::default() }
    }

    /// How it fares. The counters run while they are read. In a forked child the status is empty.
    ///
    /// Waits for a sink that is being written to.
    pub fn status(&self) -> Status {
        let drain = self.drain.as_ref().filter(|_| self.is_ours());
        drain.and_then(|drain| drain.with(|drain| Status::new(drain.report()))).unwrap_or_default()
    }

    /// How the [state dumps](crate::state_dump) fared that ran for it; none in a forked child.
    pub fn state_dumps(&self) -> Vec<StateDumpStatus> {
        if !self.is_ours() {
            return Vec::new();
        }
        self.lock().recording.as_ref().map(Recording::state_dumps).unwrap_or_default()
    }

    /// Has each [`CtfSink`](tracepoint_sinks::CtfSink) close what it has as a trace by itself, with all events that this thread has fired
    /// until now, and go on in another chunk: the directories of those that were closed. Packets that are open are closed, whatever their
    /// threads do; no packet is in two chunks, or in none. A sink that has got nothing since the last time closes nothing.
    ///
    /// Waits for the sinks. What flight recorders hold stays in their rings.
    ///
    /// # Errors
    ///
    /// [`SessionError::CannotRotate`] if there is no such sink; [`SessionError::Rotate`] if one cannot go on elsewhere, as on a full
    /// disk: it goes on where it is. [`SessionError::Forked`] in a child that was forked from the process,
    /// [`SessionError::InsideProbe`] inside a probe.
    pub fn rotate(&self) -> Result<Vec<PathBuf>, SessionError> {
        self.check_caller()?;
        match &self.lock().recording {
            Some(recording) => recording.rotate(),
            None => Err(SessionError::CannotRotate { name: self.name.clone() }),
        }
    }

    /// Ends the recording: switches the events off, waits for those that are being written, moves what is in the rings to the
    /// sinks, and closes these.
    ///
    /// # Errors
    ///
    /// [`SessionError::Sinks`] if a sink failed, now or while the session ran; it holds the summary, and the other sinks are
    /// complete. [`SessionError::Forked`] in a child that was forked from the process; nothing is done there.
    /// [`SessionError::InsideProbe`] inside a probe; the session is then dropped.
    pub fn stop(self) -> Result<Summary, SessionError> {
        self.check_caller()?;
        let recording = self.lock().recording.take();
        recording.map_or_else(|| Summary::new(self.name.clone(), Vec::new(), 0), Recording::stop)
    }

    /// Fails where the session cannot be waited for.
    fn check_caller(&self) -> Result<(), SessionError> {
        if !self.is_ours() {
            return Err(SessionError::Forked { name: self.name.clone(), process: self.process });
        }
        if tracepoint_core::in_probe() {
            return Err(SessionError::InsideProbe { name: self.name.clone() });
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).field("process", &self.process).finish_non_exhaustive()
    }
}
