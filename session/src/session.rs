//! Sessions: rules, the running recording, and its final account.
//!
//! A `builder` creates a description. A `recording` runs it, both in code and for the agent: it opens `channels` with `rings`, creates its
//! sinks (`active_sink`), and subscribes to the events (`live`). `changes` adds and removes channels and sinks. Threads that must not wait
//! for the session's lock use its `handle`, for example the `panic_hook`. `ending` ends a session on another thread if its sinks block, so
//! that other sessions continue.

mod active_sink;
mod budget_thread;
mod builder;
mod changes;
mod channels;
mod ending;
mod error;
mod handle;
mod in_code;
mod live;
mod output_list;
mod panic_hook;
mod recording;
mod rings;
mod start_guard;
mod status;

pub use builder::SessionBuilder;
pub(crate) use changes::Changed;
pub(crate) use ending::Ending;
pub use error::SessionError;
pub(crate) use handle::RecordingHandle;
pub(crate) use recording::Recording;
pub use status::{SinkFailure, Status, Summary};

use crate::budget::BudgetWatch;
use crate::catalog;
use crate::drain_thread::shared::SharedDrain;
use crate::event::all_events;
use crate::rule_match::{Matched, Matcher};
use crate::state::Round;
use crate::statistics::{Home, PlannedStatistic, RunningStatistics};
use crate::trigger::InProcessTriggers;
use budget_thread::BudgetThread;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process;
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
    name: String,
    /// The process that started it.
    process: u32,
    drain: Option<Arc<SharedDrain>>,
    /// `None` if the recording had ended before.
    handle: Option<Arc<RecordingHandle>>,
    active: Arc<Mutex<Active>>,
    /// Checks the session's budget, if it has one.
    budget: Option<BudgetThread>,
}

/// A session's description, and the recording made from it.
struct Active {
    spec: SessionSpec,
    matcher: Matcher,
    budget: BudgetWatch,
    notices: Vec<Notice>,
    statistics: RunningStatistics,
    /// Ends before the recording, because its actions need the rings.
    triggers: InProcessTriggers,
    /// `None` once it has stopped.
    recording: Option<Recording>,
}

impl Session {
    /// Builds a session called `name`: 1 to 255 bytes, without `/` and NUL, not starting with a dot.
    pub fn builder(name: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(name.into())
    }

    fn new(
        mut recording: Recording,
        spec: SessionSpec,
        matcher: Matcher,
        triggers: InProcessTriggers,
        statistics: RunningStatistics,
    ) -> Result<Self, SessionError> {
        let (name, process, drain) = (recording.name().to_owned(), recording.process(), recording.drain());
        let handle = recording.handle();
        let notices = std::mem::take(&mut recording.notices);
        let mut budget = BudgetWatch::default();
        budget.follow(spec.budget.as_ref());
        let has_budget = spec.budget.is_some();
        let active = Active { spec, matcher, budget, notices, statistics, triggers, recording: Some(recording) };
        let active = Arc::new(Mutex::new(active));
        let budget = has_budget.then(|| BudgetThread::start(&active)).transpose().map_err(SessionError::Thread)?;
        Ok(Self { name, process, drain, handle, active, budget })
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns deviations from the description, from the start until now.
    pub fn notices(&self) -> Vec<Notice> {
        self.inspect(|active| active.notices.clone())
    }

    /// Returns the current description. A sink that is an object appears in it by its name.
    pub fn spec(&self) -> SessionSpec {
        self.inspect(|active| active.spec.clone())
    }

    /// The session's sinks, with their descriptions.
    pub fn sinks(&self) -> Vec<(SinkId, SinkSpec)> {
        self.inspect(|active| active.recording.as_ref().map(Recording::sinks).unwrap_or_default())
    }

    /// The current counters; they may change while they are read. In a forked child the status is empty.
    ///
    /// Waits for a sink that is being written to.
    pub fn status(&self) -> Status {
        let drain = self.drain.as_ref().filter(|_| self.is_ours());
        let status =
            |shared: &Arc<SharedDrain>| shared.with(|drain| Status::new(drain.report(), shared.rounds().counters()));
        drain.and_then(status).unwrap_or_default()
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
        self.inspect(|active| active.statistics.results())
    }

    /// Returns the status of the [state dumps](crate::state_dump) that ran for the session; empty in a forked child.
    pub fn state_dumps(&self) -> Vec<StateDumpStatus> {
        self.inspect(|active| active.recording.as_ref().map(Recording::state_dumps).unwrap_or_default())
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
    /// [`SessionError::NoSuchRule`] if there is none. In a forked child and inside a probe, as [`stop`](Self::stop).
    pub fn disable(&self, rule: impl Into<Rule>) -> Result<(), SessionError> {
        let rule = rule.into();
        let disable = |spec: &mut SessionSpec| match spec.disable(&rule) {
            0 => {
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
    /// use tracepoint::{Channel, Session, SinkSpec, sinks::TextSink};
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
        self.check_caller()?;
        let mut active = self.lock();
        let Active { spec, notices, recording, .. } = &mut *active;
        let recording = recording.as_mut().ok_or_else(|| self.stopped())?;
        let sink = sink.into();
        let described = sink.spec();
        let mut wanted = spec.clone();
        wanted.sinks.push(described);
        wanted.check_in_process().map_err(SessionError::Spec)?;
        let id = recording.add_sink(sink, notices)?;
        in_code::publish(recording, &wanted);
        *spec = wanted;
        Ok(id)
    }

    /// Removes a sink while the session runs: it gets the packets in the rings, except those of flight recorders, and is finished. The report
    /// has its account, for the part of the trace that it got.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchSink`] if it does not exist; [`SessionError::Spec`] if it is the last one and a channel needs one. In a forked
    /// child and inside a probe, as [`stop`](Self::stop).
    pub fn remove_sink(&self, sink: SinkId) -> Result<SinkReport, SessionError> {
        self.check_caller()?;
        let mut active = self.lock();
        let Active { spec, recording, .. } = &mut *active;
        let recording = recording.as_mut().ok_or_else(|| self.stopped())?;
        let others = recording.sinks().into_iter().filter(|(id, _)| *id != sink).map(|(_, spec)| spec);
        let mut wanted = spec.clone();
        wanted.sinks = others.collect();
        if wanted.sinks.len() == spec.sinks.len() {
            return Err(SessionError::NoSuchSink { name: self.name.clone() });
        }
        wanted.check_in_process().map_err(SessionError::Spec)?;
        let report = recording.remove_sink(sink)?;
        in_code::publish(recording, &wanted);
        *spec = wanted;
        Ok(report)
    }

    /// Adds a channel while the session runs: rules that are enabled later may name it.
    ///
    /// # Errors
    ///
    /// If a channel of that name exists or existed; if it cannot be opened; if a sink cannot take packets of another channel.
    /// In a forked child and inside a probe, as [`stop`](Self::stop).
    pub fn add_channel(&self, channel: Channel) -> Result<(), SessionError> {
        self.check_caller()?;
        let mut active = self.lock();
        let Active { spec, recording, .. } = &mut *active;
        let recording = recording.as_mut().ok_or_else(|| self.stopped())?;
        let mut wanted = spec.clone();
        wanted.channels.push(ChannelSpec::from(&channel));
        wanted.check_in_process().map_err(SessionError::Spec)?;
        recording.add_channel(channel)?;
        in_code::publish(recording, &wanted);
        *spec = wanted;
        Ok(())
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

    /// Changes the description, and applies it to the recording. `added` is a rule that must match an event.
    fn change(
        &self,
        change: impl FnOnce(&mut SessionSpec) -> Result<(), SessionError>,
        added: Option<&Rule>,
    ) -> Result<(), SessionError> {
        self.check_caller()?;
        let mut active = self.lock();
        let mut wanted = active.spec.clone();
        change(&mut wanted)?;
        wanted.check_in_process().map_err(SessionError::Spec)?;
        active.apply(wanted, added, || self.stopped())
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
        self.handle()?.rotate()
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
        self.handle()?.flush()
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
        self.handle()?.snapshot(out.as_ref())
    }

    fn handle(&self) -> Result<&RecordingHandle, SessionError> {
        self.handle.as_deref().ok_or_else(|| self.stopped())
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
        self.check_caller()?;
        let recording = {
            let mut active = self.lock();
            active.triggers = InProcessTriggers::default();
            active.statistics.remove();
            active.recording.take()
        };
        recording.map_or_else(|| Ok(Summary::new(self.name.clone(), Vec::new(), 0)?), Recording::stop)
    }

    /// Fails if the caller cannot wait for the session.
    fn check_caller(&self) -> Result<(), SessionError> {
        if !self.is_ours() {
            return Err(SessionError::Forked { name: self.name.clone(), process: self.process });
        }
        if tracepoint_core::in_probe() {
            return Err(SessionError::InsideProbe { name: self.name.clone() });
        }
        Ok(())
    }

    fn stopped(&self) -> SessionError {
        SessionError::Stopped { name: self.name.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the session. Returns the default in a forked child; also inside a probe while another thread changes the session, because
    /// the change may wait for the probe.
    fn inspect<R: Default>(&self, read: impl FnOnce(&Active) -> R) -> R {
        if !self.is_ours() {
            return R::default();
        }
        if tracepoint_core::in_probe() {
            return self.active.try_lock().map(|active| read(&active)).unwrap_or_default();
        }
        read(&self.lock())
    }

    fn is_ours(&self) -> bool {
        self.process == process::id()
    }
}

/// Computes exactly these statistics, in the directory of the session if there is one.
fn compute(
    statistics: &mut RunningStatistics,
    recording: &Recording,
    spec: &SessionSpec,
    planned: Vec<PlannedStatistic>,
) -> Result<(), SessionError> {
    // SESSION/rings/PROCESS
    let rings = recording.ring_dir();
    let home = Home {
        session: rings.and_then(|rings| rings.ancestors().nth(2)),
        process: rings.and_then(|rings| rings.file_name()?.to_str()).unwrap_or_default(),
        ring_memory: spec.limits.memory,
    };
    match statistics.follow(home, planned).into_iter().next() {
        Some(reason) => Err(SessionError::Statistic { reason }),
        None => Ok(()),
    }
}

impl Active {
    /// Applies another description to the recording.
    fn apply(
        &mut self,
        wanted: SessionSpec,
        added: Option<&Rule>,
        stopped: impl FnOnce() -> SessionError,
    ) -> Result<(), SessionError> {
        let Self { spec, matcher, budget, notices, statistics, triggers, recording } = self;
        let Some(recording) = recording else { return Err(stopped()) };
        let all = all_events(catalog::markers(), &mut Vec::new());
        let Matched { mut events, rules, notices: new, statistics: planned } =
            matcher.run(&wanted, ProcessKey::of_this_process(), &this_process().executable, &all);
        for (rule, applies) in wanted.rules().zip(rules) {
            let (Ok(rule), Some(applies)) = (rule, applies) else { continue };
            if added == Some(rule) && applies? == 0 && !rule.excludes() {
                return Err(builder::no_match(rule, &all));
            }
        }
        budget.follow(wanted.budget.as_ref());
        events.retain(|event| !budget.is_off(&event.name));
        let Changed { more_events, notices: pending, mut errors } = recording.follow(&wanted, &events);
        // Events of other rules may have been registered meanwhile; for these a notice suffices.
        let is_left_out = |rule: &Rule, notice: &Notice| {
            matches!(notice, Notice::TooManyEvents { event, .. } if rule.matches(event)) && !notices.contains(notice)
        };
        if let Some(rule) = added
            && let Some(notice) = pending.iter().find(|notice| is_left_out(rule, notice))
        {
            errors.push(SessionError::NoIds { rule: rule.to_string(), reason: notice.to_string() });
        }
        recording.dump_state(if more_events { Round::All } else { Round::New });
        if !errors.is_empty() {
            // Returns to the former description, except for events that the budget has disabled.
            let mut events = matcher.run(spec, ProcessKey::of_this_process(), &this_process().executable, &all).events;
            events.retain(|event| !budget.is_off(&event.name));
            if let Some(running) = recording.running_mut() {
                errors.extend(running.live.switch_to(&events, &running.channels).err());
            }
            return Err(errors.swap_remove(0));
        }
        compute(statistics, recording, &wanted, planned)?;
        notices.extend(new.into_iter().chain(pending).filter(|notice| !notices.contains(notice)).collect::<Vec<_>>());
        in_code::publish(recording, &wanted);
        *spec = wanted;
        builder::follow_triggers(triggers, spec, recording, statistics, &all)
    }

    /// Compares the session's cost with its budget, and disables the most frequent event if the cost is higher.
    fn check_budget(&mut self) {
        let usage = self.recording.as_ref().and_then(Recording::usage);
        let Some((limits, usage)) = self.spec.budget.as_ref().zip(usage) else { return };
        let over = self.budget.check(limits, std::time::Instant::now(), usage).map(ToString::to_string);
        if let Some(reason) = over {
            let stopped = || SessionError::Stopped { name: String::new() };
            let spec = self.spec.clone();
            // If the event cannot be disabled now, a later check disables it.
            let _ = self.apply(spec, None, stopped);
            self.notices.push(Notice::OverBudget { reason });
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_ours() {
            // The thread exists in the parent only, and may have held a lock when the process forked.
            return std::mem::forget(self.budget.take());
        }
        // Inside a probe another thread may hold the lock for a change that waits for the probe.
        let active = if tracepoint_core::in_probe() { self.active.try_lock().ok() } else { Some(self.lock()) };
        let recording = active.and_then(|mut active| {
            active.statistics.remove();
            active.recording.take()
        });
        drop(recording);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).field("process", &self.process).finish_non_exhaustive()
    }
}
