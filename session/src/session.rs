//! Sessions: rules, the running recording, and its final account.
//!
//! A `builder` creates a description, and `rule_check` checks what its rules match. `running` has the life of a session, for sessions in code
//! and for the agent alike; its `ended` recordings finish on other threads if their sinks block. A `recording` is started with `settings`: it
//! opens `channels` with `rings`, creates its sinks (`active_sink`), and enables the events (`enabled_events`). `changes` adds and removes
//! channels and sinks. Threads that must not wait for the session's lock use the `shared_recording`, for example `panic_snapshot`.

mod active_sink;
mod budget_thread;
mod builder;
mod changes;
mod channels;
mod enabled_events;
mod ended;
mod error;
#[cfg_attr(not(target_os = "linux"), path = "session/in_code/elsewhere.rs")]
mod in_code;
mod panic_snapshot;
mod pending_summary;
mod recording;
mod rings;
mod rule_check;
mod running;
mod settings;
mod shared_recording;
mod start_guard;
mod status;

pub use builder::SessionBuilder;
pub use error::SessionError;
pub(crate) use pending_summary::PendingSummary;
pub(crate) use recording::Recording;
pub(crate) use rule_check::no_match;
pub(crate) use running::{RunningSession, Target};
pub(crate) use settings::RecordingSettings;
pub(crate) use shared_recording::SharedRecording;
pub use status::{SinkFailure, Status, Summary};

use crate::catalog;
use crate::event::{Program, all_events};
use budget_thread::BudgetThread;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracepoint_core::channel::Channel;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::StateDumpStatus;
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::own_process::this_process;
use tracepoint_session_io::SnapshotSummary;
use tracepoint_session_io::statistics::StatisticResult;
use tracepoint_session_spec::{ChannelSpec, Rule, SessionSpec, SinkSource, SinkSpec};
use tracepoint_sinks::{SinkId, SinkReport};

/// A running recording. [`Session::stop`] ends it and returns the account; dropping it also ends it.
///
/// A forked child of the process is not part of the session: its events are not recorded, and `stop` and drop have no effect in it.
///
/// The rings are files in the session's directory, unless they are [in memory](SessionBuilder::in_memory). The files are removed when the
/// session ends. If the process is killed, or calls `process::exit` without `stop`, they stay, with all committed events.
///
/// Packets go to the sinks when they are full or half a second old, and all of them when the session ends; packets of flight recorders
/// only at the end. `stop` waits for the sinks, without limit if one blocks.
///
/// Inside a probe no code can wait for a session: `stop` and all calls that change a session return an error there, and a session that is
/// dropped there is ended by a separate thread, soon after.
pub struct Session {
    shared: Arc<SharedRecording>,
    state: Arc<Mutex<SessionState>>,
    /// Checks the session's budget, if it has one.
    budget: Option<BudgetThread>,
}

/// The part of a session in code that its lock protects.
struct SessionState {
    session: RunningSession,
    /// Deviations from the description since the start.
    notices: Vec<Notice>,
}

impl Session {
    /// Builds a session called `name`: 1 to 255 bytes, without `/` and NUL, not starting with a dot.
    pub fn builder(name: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(name.into())
    }

    fn new(session: RunningSession, notices: Vec<Notice>) -> Result<Self, SessionError> {
        let stopped = || SessionError::Stopped(session.name.clone());
        let shared = session.recording.as_ref().map(|recording| Arc::clone(recording.shared())).ok_or_else(stopped)?;
        let has_budget = session.spec.as_ref().is_some_and(|spec| spec.budget.is_some());
        let state = Arc::new(Mutex::new(SessionState { session, notices }));
        let budget = has_budget.then(|| BudgetThread::start(&state)).transpose().map_err(SessionError::Thread)?;
        Ok(Self { shared, state, budget })
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Returns deviations from the description, from the start until now.
    pub fn notices(&self) -> Vec<Notice> {
        self.inspect(|state| state.notices.clone())
    }

    /// Returns the current description. A sink that is an object appears in it by its name.
    pub fn spec(&self) -> SessionSpec {
        self.inspect(|state| state.session.spec.clone()).unwrap_or_default()
    }

    /// The session's sinks, with their descriptions.
    pub fn sinks(&self) -> Vec<(SinkId, SinkSpec)> {
        self.inspect(|state| state.session.recording.as_ref().map(Recording::sinks).unwrap_or_default())
    }

    /// The current counters; they may change while they are read. In a forked child the status is empty.
    ///
    /// Waits for a sink that is being written to.
    pub fn status(&self) -> Status {
        self.is_ours().then(|| self.shared.status()).flatten().unwrap_or_default()
    }

    /// Returns the results so far of the rules with a [statistic](Rule::statistic) in this process; empty in a forked child.
    ///
    /// ```
    /// use tracepoint::{Rule, Session};
    /// use tracepoint_probes::snapshot::Results;
    ///
    /// # tracepoint::define_trace! { provider = "shop"; pub sold(pieces: u64) { pieces: u64 = pieces } }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let session = Session::builder("sales").events(Rule::new("shop:sold").statistic("hist(pieces)")).in_memory().start()?;
    /// tracepoint::trace!(sold(3));
    /// let results = session.statistics();
    /// let Results::Histogram(pieces) = &results[0].snapshot.results else { panic!("{results:?}") };
    /// assert_eq!(pieces.all.as_ref().and_then(|pieces| pieces.max()), Some(3.0));
    /// # session.stop()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn statistics(&self) -> Vec<StatisticResult> {
        self.inspect(|state| state.session.statistics.results())
    }

    /// Returns the status of the [state dumps](crate::state_dump) that ran for the session; empty in a forked child.
    pub fn state_dumps(&self) -> Vec<StateDumpStatus> {
        self.inspect(|state| state.session.state_dumps())
    }

    /// Adds a rule while the session runs: from now on the events that it matches are recorded, and the [state dumps](crate::state_dump)
    /// run. The rule replaces one for the same events, programs, process and channel; this changes the conditions of a rule. Events that the
    /// budget has disabled are enabled again.
    ///
    /// # Errors
    ///
    /// If the rule is invalid, matches no event, or names a channel that the session does not have; if the new events cannot be described
    /// to a sink, or cannot be enabled; [`SessionError::NoIds`] for events beyond [`max_events`](SessionBuilder::max_events). The session then
    /// continues unchanged. In a forked child and inside a probe, as [`stop`](Self::stop).
    pub fn enable(&self, rule: impl Into<Rule>) -> Result<(), SessionError> {
        let rule = rule.into();
        let enable = |spec: &mut SessionSpec| {
            spec.renew_budget();
            spec.enable(&rule).map(drop).map_err(SessionError::from)
        };
        self.change(enable, Some(&rule))
    }

    /// Removes the rules for these events (and programs, process and channel) while the session runs; if `rule` has conditions, only rules
    /// with the same conditions. Events that no other rule matches are not recorded from now on. To exclude some of the events that a rule
    /// matches, [`enable`](Self::enable) a rule that starts with `!`.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchRule`] if there is none, [`SessionError::Rule`] if a part of `rule` is invalid. In a forked child and inside a
    /// probe, as [`stop`](Self::stop).
    pub fn disable(&self, rule: impl Into<Rule>) -> Result<(), SessionError> {
        let rule = rule.into();
        let disable = |spec: &mut SessionSpec| match spec.disable(&rule) {
            0 => {
                rule.check_parts()?;
                let known: Vec<_> = spec.rules().flatten().map(ToString::to_string).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(SessionError::NoSuchRule { rule: rule.to_string(), known })
            }
            _ => Ok(()),
        };
        self.change(disable, None)
    }

    /// Adds a sink while the session runs: it gets the description of the trace, its channels and its events, and the packets that are moved
    /// from now on. Earlier events are not losses of the sink: its account counts them as the part of the trace before it was added.
    ///
    /// ```
    /// use tracepoint::{Channel, Session, session::SinkSpec, sinks::TextSink};
    ///
    /// # tracepoint::define_trace! { provider = "net"; pub received(n: u64) { n: u64 = n } }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = tempfile::tempdir_in("/dev/shm")?;
    /// let flight = Session::builder("flight").events("net:*").channel(Channel::overwrite(1 << 20));
    /// # let flight = flight.dir(place.path().join("rings"));
    /// let flight = flight.start()?;
    /// let text = flight.add_sink(TextSink::new(Vec::new()))?;
    /// let ctf = flight.add_sink(SinkSpec::ctf(place.path().join("trace")))?;
    /// flight.remove_sink(text)?;
    /// # assert_eq!(flight.sinks().len(), 1);
    /// # flight.stop()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the sink cannot be made or started. In a forked child and inside a probe, as [`stop`](Self::stop).
    pub fn add_sink(&self, sink: impl Into<SinkSource>) -> Result<SinkId, SessionError> {
        let sink = sink.into();
        let described = sink.spec();
        self.change_recording(
            |spec, _| {
                spec.sinks.push(described);
                Ok(())
            },
            |recording, notices| recording.add_sink(sink, notices),
        )
    }

    /// Removes a sink while the session runs: it gets the packets in the rings, except those of flight recorders, and is finished. The report
    /// has its account, for the part of the trace that it got.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchSink`] if it does not exist; [`SessionError::Spec`] if it is the last one and a channel needs one. In a forked
    /// child and inside a probe, as [`stop`](Self::stop).
    pub fn remove_sink(&self, sink: SinkId) -> Result<SinkReport, SessionError> {
        self.change_recording(
            |spec, recording| {
                let before = spec.sinks.len();
                let others = recording.sinks().into_iter().filter(|(id, _)| *id != sink);
                spec.sinks = others.map(|(_, spec)| spec).collect();
                if spec.sinks.len() == before {
                    return Err(SessionError::NoSuchSink(self.name().to_owned()));
                }
                Ok(())
            },
            |recording, _| recording.remove_sink(sink),
        )
    }

    /// Adds a channel while the session runs: rules that are enabled later may name it.
    ///
    /// # Errors
    ///
    /// If a channel of that name exists or existed; if it cannot be opened; if a sink cannot take packets of another channel.
    /// In a forked child and inside a probe, as [`stop`](Self::stop).
    pub fn add_channel(&self, channel: Channel) -> Result<(), SessionError> {
        let described = ChannelSpec::from(&channel);
        self.change_recording(
            |spec, _| {
                spec.channels.push(described);
                Ok(())
            },
            |recording, _| recording.add_channel(channel),
        )
    }

    /// Removes a channel while the session runs, and the rules that name it: its events are disabled, and the sinks get the packets in its
    /// rings. Its counters stay in the account.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoChannel`] if no channel has that name, or it is the default one. In a forked child and inside a probe, as
    /// [`stop`](Self::stop).
    pub fn remove_channel(&self, name: &str) -> Result<(), SessionError> {
        let remove = |spec: &mut SessionSpec| {
            let known = spec.channels.iter().map(|channel| channel.name.as_str()).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none but the default one".to_owned() } else { known };
            let missing = || SessionError::NoChannel { name: name.to_owned(), known };
            if spec.remove_channel(name) { Ok(()) } else { Err(missing()) }
        };
        self.change(remove, None)
    }

    /// Changes the description, and applies it. `added` is a rule that must match an event.
    fn change(
        &self,
        change: impl FnOnce(&mut SessionSpec) -> Result<(), SessionError>,
        added: Option<&Rule>,
    ) -> Result<(), SessionError> {
        self.shared.check_caller()?;
        let mut state = self.lock();
        let mut wanted = state.session.spec.clone().ok_or_else(|| self.shared.stopped())?;
        change(&mut wanted)?;
        wanted.check_in_process().map_err(SessionError::Spec)?;
        state.apply(&wanted, added)
    }

    /// Changes the description, and then the recording in the same way.
    fn change_recording<R>(
        &self,
        describe: impl FnOnce(&mut SessionSpec, &Recording) -> Result<(), SessionError>,
        change: impl FnOnce(&mut Recording, &mut Vec<Notice>) -> Result<R, SessionError>,
    ) -> Result<R, SessionError> {
        self.shared.check_caller()?;
        let mut state = self.lock();
        let SessionState { session, notices } = &mut *state;
        let mut wanted = session.spec.clone().ok_or_else(|| self.shared.stopped())?;
        let recording = session.recording.as_mut().ok_or_else(|| self.shared.stopped())?;
        describe(&mut wanted, recording)?;
        wanted.check_in_process().map_err(SessionError::Spec)?;
        let result = change(recording, notices)?;
        in_code::publish(recording, &wanted);
        session.spec = Some(wanted);
        Ok(result)
    }

    /// Makes each [`CtfSink`](tracepoint_sinks::CtfSink) finish its current chunk as a complete trace and continue in a new one; returns the
    /// directories of the finished chunks. They contain all events that this thread has fired until now: open packets are closed, whatever
    /// their threads do, and each packet goes into exactly one chunk. A sink that got no packet since the last rotation finishes no chunk.
    ///
    /// Waits for the sinks. The contents of flight recorders stay in their rings.
    ///
    /// # Errors
    ///
    /// [`SessionError::CannotRotate`] if no sink can rotate; [`SessionError::Rotate`] if a sink cannot start a new chunk, for example on a
    /// full disk: it continues in the current one. [`SessionError::Forked`] in a forked child, [`SessionError::InsideProbe`] inside a probe.
    pub fn rotate(&self) -> Result<Vec<PathBuf>, SessionError> {
        self.shared.rotate()
    }

    /// Moves all events that this thread has fired until now to the sinks, without waiting for packets to be full or old: open packets are
    /// closed, whatever their threads do. A [`CtfSink`](tracepoint_sinks::CtfSink) and a dt sink have written them when this returns; text
    /// and UDP sinks, which order events of several threads, write them within two seconds.
    ///
    /// Waits for the sinks. The contents of flight recorders stay in their rings.
    ///
    /// # Errors
    ///
    /// [`SessionError::Stopped`] if the session has stopped; in a forked child and inside a probe, as [`stop`](Self::stop). Errors of sinks
    /// are in [`Session::status`].
    pub fn flush(&self) -> Result<(), SessionError> {
        self.shared.flush()
    }

    /// Takes a snapshot while the session continues: writes the current contents of the rings, all committed events of all channels, as a
    /// CTF trace with its metadata and account into `out`. `tracectl verify` checks its account and reports that it is a snapshot. It also
    /// contains the packets that CTF and dt sinks of the session have kept, each event once; events that were written only to other sinks
    /// are counted as lost there (`sink`).
    ///
    /// `out` must be empty if it exists. It gets its contents when they are complete: an error, or a kill of the process, leaves no partial
    /// trace.
    ///
    /// May be called by any thread at any time, by several at once, and by a panic hook: it takes no locks, and waits only for reading and
    /// writing. It slows down the recording threads only by its memory bandwidth. Costs the time to copy the rings, memory of twice the
    /// largest ring, and the disk space of the trace. [`stop`](Self::stop) waits for snapshots that are being written.
    ///
    /// ```
    /// use tracepoint::{Channel, Session};
    ///
    /// # tracepoint::define_trace! { provider = "engine"; pub step(n: u64) { n: u64 = n } }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = tempfile::tempdir()?;
    /// # let out = place.path().join("out");
    /// let flight = Session::builder("flight").events("engine:*").channel(Channel::overwrite(1 << 20)).in_memory().start()?;
    /// tracepoint::trace!(step(1));
    /// let summary = flight.snapshot(&out)?;
    /// assert_eq!(summary.events, 1);
    /// # flight.stop()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SessionError::Snapshot`] if `out` is not empty or cannot be written, or if no ring can be read; [`SessionError::Stopped`] if the
    /// session has stopped, or is being stopped. In a forked child and inside a probe, as [`stop`](Self::stop).
    pub fn snapshot(&self, out: impl AsRef<Path>) -> Result<SnapshotSummary, SessionError> {
        self.shared.snapshot(out.as_ref())
    }

    /// Ends the recording: disables the events, waits for those that are being written, moves the contents of the rings to the sinks, and
    /// finishes the sinks.
    ///
    /// # Errors
    ///
    /// [`SessionError::Sinks`] if a sink failed, now or while the session ran; the error holds the summary, and the other sinks are
    /// complete. [`SessionError::Forked`] in a forked child, where nothing is done. [`SessionError::InsideProbe`] inside a probe; the
    /// session is then dropped.
    pub fn stop(self) -> Result<Summary, SessionError> {
        self.shared.check_caller()?;
        let recording = self.lock().session.take_recording();
        recording.map_or_else(|| Ok(Summary::new(self.name().to_owned(), Vec::new(), 0)?), Recording::stop)
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the session. Returns the default in a forked child; also inside a probe while another thread changes the session, because
    /// the change may wait for the probe.
    fn inspect<R: Default>(&self, read: impl FnOnce(&SessionState) -> R) -> R {
        if !self.is_ours() {
            return R::default();
        }
        if tracepoint_core::in_probe() {
            return self.state.try_lock().map(|state| read(&state)).unwrap_or_default();
        }
        read(&self.lock())
    }

    fn is_ours(&self) -> bool {
        self.shared.is_ours()
    }
}

impl SessionState {
    /// Applies another description, as a whole or not at all.
    fn apply(&mut self, wanted: &SessionSpec, added: Option<&Rule>) -> Result<(), SessionError> {
        let Self { session, notices } = self;
        let (all, process) = (all_events(catalog::markers(), &mut Vec::new()), this_process());
        let program = Program { key: ProcessKey::of_this_process(), executable: &process.executable, events: &all };
        let matched = session.match_rules(wanted, program);
        if let Some(rule) = added {
            rule_check::check_each(wanted, &matched, &all, |other| other == rule)?;
        }
        let (former, budget) = (session.spec.clone().unwrap_or_default(), session.budget.clone());
        let name = session.name.clone();
        let stopped = |_: &[_]| Err(SessionError::Stopped(name.clone()));
        let mut report = session.apply(wanted, Target::Active, matched, program, stopped);
        // Events of other rules may have been registered meanwhile; for these a notice suffices.
        let is_left_out = |rule: &Rule, notice: &Notice| {
            matches!(notice, Notice::TooManyEvents { event, .. } if rule.matches(event)) && !notices.contains(notice)
        };
        let left_out = added.and_then(|rule| {
            let notice = report.notices.iter().find(|notice| is_left_out(rule, notice))?;
            Some(SessionError::NoIds { rule: rule.to_string(), reason: notice.to_string() })
        });
        if let Some(error) = report.take_error().or(left_out) {
            // The events that the budget has disabled stay disabled, although `wanted` may have renewed its round.
            session.budget = budget;
            let matched = session.match_rules(&former, program);
            session.apply(&former, Target::Active, matched, program, stopped);
            return Err(error);
        }
        let new: Vec<_> = report.notices.into_iter().filter(|notice| !notices.contains(notice)).collect();
        notices.extend(new);
        session.recording.iter().for_each(|recording| in_code::publish(recording, wanted));
        Ok(())
    }

    /// Compares the session's cost with its budget, and disables the most frequent event if the cost is higher.
    fn check_budget(&mut self) {
        let Some((reason, spec)) = self.session.check_budget().zip(self.session.spec.clone()) else { return };
        // If this fails and the event is still enabled, the next change of the session disables it.
        let _ = self.apply(&spec, None);
        self.notices.push(Notice::OverBudget(reason));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_ours() {
            // The thread exists in the parent only, and may have held a lock when the process forked.
            return std::mem::forget(self.budget.take());
        }
        // Inside a probe another thread may hold the lock for a change that waits for the probe.
        let state = if tracepoint_core::in_probe() { self.state.try_lock().ok() } else { Some(self.lock()) };
        let recording = state.and_then(|mut state| state.session.take_recording());
        drop(recording);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name()).finish_non_exhaustive()
    }
}
