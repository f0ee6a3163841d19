//! Sessions: from the rules to the recording, and to its account.

mod asked;
mod builder;
mod channels;
mod ending;
mod error;
mod live;
mod notice;
mod outputs;
mod plan;
mod rings;
mod status;
mod unfinished;
mod usage;

pub use builder::SessionBuilder;
pub(crate) use builder::check_name;
pub(crate) use ending::Ending;
pub use error::{SessionError, SinkFailure};
pub use notice::Notice;
pub(crate) use plan::{PlannedEvent, RoutedRule, all_events};
pub use status::{Status, Summary};
pub(crate) use usage::{EventUsage, Usage};

use crate::drain_thread::DrainThread;
use crate::drain_thread::shared::SharedDrain;
use crate::session_dir::ProcessDir;
use crate::state::{Round, Runs, StateDumpStatus};
use channels::Channels;
use live::LiveEvents;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tracepoint_sinks::{Drain, SinkError, SinkReport};

/// A recording that runs. [`Session::stop`] ends it and gives the account; dropping it ends it too.
///
/// A child that is forked from the process has no part in the session: what it fires is not recorded, and `stop` and drop do
/// nothing there.
///
/// The rings are files in the session's directory, unless they are [in memory](SessionBuilder::in_memory). When the session
/// ends, they vanish; when the process is killed, or ends by `process::exit` without `stop`, they stay, with all that was
/// committed.
///
/// Packets go to the sinks when they are full, or half a second old, and all of them when the session ends; those of flight recorders
/// only then. `stop` waits for the sinks: one that blocks for ever blocks it, too.
///
/// Inside a probe a session cannot be waited for: `stop` refuses, and a session that is dropped there is ended by a thread of its
/// own, soon after.
#[derive(Debug)]
pub struct Session {
    name: String,
    /// The process that started it.
    process: u32,
    notices: Vec<Notice>,
    /// `None` once it has stopped.
    running: Option<Running>,
}

/// What a session holds while it runs.
#[derive(Debug)]
struct Running {
    live: LiveEvents,
    thread: DrainThread,
    drain: Arc<SharedDrain>,
    channels: Channels,
    /// Where the rings are; `None` if they are in memory.
    dir: Option<Arc<ProcessDir>>,
    /// Whether the packets are taken from outside.
    outside: bool,
    /// Counts pages of rings that were cut off.
    cut_off: Option<Arc<AtomicU64>>,
    /// The state dumps that ran for it.
    dumps: Runs,
}

impl Session {
    /// Begins the description of a session called `name`: 1 to 255 bytes, without `/` and NUL, not starting with a dot.
    pub fn builder(name: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(name.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is worth knowing about how it was started, and was no reason not to start it.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// How it fares. The counters run while they are read. In a forked child the status is empty.
    ///
    /// Waits for a sink that is being written to.
    pub fn status(&self) -> Status {
        let running = self.running.as_ref().filter(|_| self.is_ours());
        running.and_then(|running| running.drain.with(|drain| Status::new(drain.report()))).unwrap_or_default()
    }

    /// The same; an error if a sink has blocked for longer than whoever controls the session waits.
    pub(crate) fn status_in_time(&self) -> Result<Status, SinkError> {
        match self.running.as_ref().filter(|_| self.is_ours()) {
            Some(running) => Ok(running.drain.look(|drain| Status::new(drain.report()))?.unwrap_or_default()),
            None => Ok(Status::default()),
        }
    }

    /// The same, if it can be told at once.
    pub(crate) fn status_at_once(&self) -> Option<Status> {
        let running = self.running.as_ref().filter(|_| self.is_ours())?;
        running.drain.glance(|drain| Status::new(drain.report()))
    }

    /// How the [state dumps](crate::state_dump) fared that ran for it; none in a forked child.
    pub fn state_dumps(&self) -> Vec<StateDumpStatus> {
        self.running.as_ref().filter(|_| self.is_ours()).map(|running| running.dumps.status()).unwrap_or_default()
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
        let name = || self.name.clone();
        if !self.is_ours() {
            return Err(SessionError::Forked { name: name(), process: self.process });
        }
        if tracepoint_core::in_probe() {
            return Err(SessionError::InsideProbe { name: name() });
        }
        let Some(running) = &self.running else { return Err(SessionError::CannotRotate { name: name() }) };
        let rotate = |drain: &mut Drain| drain.can_rotate().then(|| drain.rotate()).transpose();
        let rotated = running.drain.act(rotate).map_err(SessionError::Rotate)?;
        rotated.flatten().ok_or_else(|| SessionError::CannotRotate { name: name() })
    }

    /// Ends the recording: switches the events off, waits for those that are being written, moves what is in the rings to the
    /// sinks, and closes these.
    ///
    /// # Errors
    ///
    /// [`SessionError::Sinks`] if a sink failed, now or while the session ran; it holds the summary, and the other sinks are
    /// complete. [`SessionError::Forked`] in a child that was forked from the process; nothing is done there.
    /// [`SessionError::InsideProbe`] inside a probe; the session is then dropped.
    pub fn stop(mut self) -> Result<Summary, SessionError> {
        if !self.is_ours() {
            return Err(SessionError::Forked { name: self.name.clone(), process: self.process });
        }
        if tracepoint_core::in_probe() {
            return Err(SessionError::InsideProbe { name: self.name.clone() });
        }
        let cut_off = self.running.as_ref().and_then(|running| running.cut_off.clone());
        let reports = self.running.take().map(Running::stop).unwrap_or_default();
        let cut_off_pages = cut_off.map_or(0, |pages| pages.load(Ordering::Relaxed));
        Summary::new(self.name.clone(), reports, cut_off_pages)
    }

    /// Records these events from here on, and no others. Those that are new to it are described first; at most as many different ones
    /// as it was started for are ever recorded.
    ///
    /// Where the new ones cannot be switched on, those of before go on, and the session is as it was. Whether events are on now that were not.
    pub(crate) fn switch(&mut self, events: &[PlannedEvent]) -> Result<bool, SessionError> {
        match &mut self.running {
            Some(running) => running.switch(events),
            None => Ok(false),
        }
    }

    /// Has the program tell its state to this session. What cannot be done is no reason not to record.
    pub(crate) fn dump_state(&mut self, round: Round) {
        let due = self.running.as_ref().map(|running| running.dumps.due(round)).unwrap_or_default();
        if let Some(running) = self.running.as_mut().filter(|_| !due.is_empty()) {
            // Without the events around it, state could be taken for news.
            if running.live.switch_state_on(&running.channels, &running.drain, running.dir.as_deref()).is_ok() {
                running.dumps.run(&due, &self.name, running.channels.first());
            } else {
                running.dumps.pass_over(&due);
            }
        }
    }

    /// What it has cost so far; `None` once it has stopped. Waits for no sink.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let running = self.running.as_ref()?;
        let accounts: Vec<_> = running.channels.all().iter().map(|channel| channel.account()).collect();
        let mut events: BTreeMap<String, EventUsage> = BTreeMap::new();
        for (class, name, id) in running.live.names() {
            if let Some(event) = accounts[class as usize].events.get(usize::from(id.get())) {
                // One that goes into several channels costs in each.
                let sum = events.entry(name.to_owned()).or_default();
                sum.fired += event.fired;
                sum.recorded += event.recorded;
            }
        }
        let bytes = accounts.iter().flat_map(|account| &account.streams).map(|stream| stream.bytes).sum();
        Some(Usage { bytes, drain: running.thread.taken(), events })
    }

    /// Whether its channels, the default one first, are called so.
    pub(crate) fn has_channels<'n>(&self, names: impl Iterator<Item = &'n str>) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.channels.all().iter().map(|channel| channel.name()).eq(names))
    }

    /// Why threads to come have no ring, if it is so, and what can be done. Waits for no sink.
    pub(crate) fn want_of_rings(&self) -> Option<String> {
        let reason = self.running.as_ref()?.thread.unsupplied()?;
        let mend = "make room there, raise `memory_cap`, or choose smaller rings";
        Some(format!("threads that begin now have no ring, and their events are lost (no_ring): {reason}; {mend}"))
    }

    /// Where its rings are; `None` if they are in memory.
    pub(crate) fn ring_dir(&self) -> Option<&Path> {
        Some(self.running.as_ref()?.dir.as_ref()?.path())
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if self.is_ours() {
            // Whoever drops a session does not ask how it ended; and a panic here could end the program.
            let stop = move || drop(catch_unwind(AssertUnwindSafe(|| running.stop())));
            if tracepoint_core::in_probe() {
                // Without a thread to be had the session is dropped as it is: the trace lacks its end, and `verify` says so.
                let _ = thread::Builder::new().name("tracepoint-stop".to_owned()).spawn(stop);
            } else {
                stop();
            }
        } else {
            // The thread, the rings and the files are the parent's, and a lock may be held by a thread that is not here.
            std::mem::forget(running);
        }
    }
}

impl Running {
    fn switch(&mut self, events: &[PlannedEvent]) -> Result<bool, SessionError> {
        self.live.describe(events, &self.channels, &self.drain, self.dir.as_deref())?;
        self.live.switch_to(events, &self.channels)
    }

    fn stop(mut self) -> Vec<SinkReport> {
        self.switch_off();
        self.finish()
    }

    fn switch_off(&mut self) {
        // Dumps that still run have nobody to tell it to.
        self.dumps = Runs::default();
        // Waits for a grace period: from here on nothing is written into the rings.
        self.live.switch_all_off();
    }

    /// The events are off.
    fn finish(self) -> Vec<SinkReport> {
        let Self { thread, drain, channels, dir, outside, .. } = self;
        thread.stop();
        let reports = drain.take().map(Drain::finish).unwrap_or_default();
        channels.close();
        drop(channels);
        // All that was in the rings has gone to the sinks, or is counted. Where it could not be taken out, it stays.
        let drained = !reports.is_empty() && reports.iter().all(|report| report.account.complete);
        match dir {
            Some(dir) if outside => dir.leave(),
            Some(dir) if drained => dir.remove(),
            _ => {}
        }
        reports
    }
}
