//! One session as it is applied in this process.

mod acknowledge;
mod end;
mod triggers;

use super::SINK_TIMEOUT;
use super::context::Context;
use super::current_errors::{CurrentErrors, Retry};
use super::file_version::{FileVersion, read_if_changed};
use super::named_outputs::Named;
use super::spare_descriptors::lacks_descriptors;
use super::watch::{Watched, has_ended, watch};
use crate::budget::BudgetWatch;
use crate::event::PlannedEvent;
use crate::rule_match::{Matched, Matcher};
use crate::session::{Changed, Ending, Recording, SessionBuilder, SessionError, Status};
use crate::state::Round;
use crate::statistics::{Home, PlannedStatistic, RunningStatistics};
use crate::trigger::InProcessTriggers;
use fileguard::Kept;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_run_dir::ack::{Ack, ChannelCounters, Counters, RotationResult, RuleAck, files};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::private_dir::{PrivateDir, refused};
use tracepoint_session_io::owner;
use tracepoint_session_io::sink_features::SinkFeature;
use tracepoint_session_spec::{DrainedBy, RuleError, SessionSpec, SinkSpec, State, TriggerAction, TriggerSpec};

/// Maximum number of recordings that are ending when a new one starts: each still holds its rings, and the number of channels is limited.
const MAX_ENDINGS: usize = 3;

/// One session in this process.
#[derive(Debug)]
pub(super) struct ActiveSession {
    name: String,
    file_version: Option<FileVersion>,
    spec: Option<SessionSpec>,
    recording: Option<Recording>,
    /// The recording's status at the last acknowledgement.
    last_status: Status,
    /// Earlier recordings whose sinks are slow or blocked, each with its last status, which does not include the packets that the sinks
    /// have not yet taken.
    endings: Vec<(Ending, Status)>,
    /// Ending recordings of a removed session of the same name.
    abandoned: Vec<Ending>,
    /// The time until which the current scan waits for endings.
    deadline: Instant,
    matcher: Matcher,
    budget: BudgetWatch,
    /// The counters of the recordings that ended.
    ended_counters: Counters,
    ended_channels: ChannelCounters,
    /// Watches the process that owns the session, if the session has an owner and has not ended.
    owner: Option<Arc<Kept<OwnedFd>>>,
    owner_ended: bool,
    errors: CurrentErrors,
    /// The error with which the last recording ended.
    end_error: Option<String>,
    /// The number of the last requested rotation.
    rotations: u64,
    named: Named,
    /// Notices of the last match of the rules.
    notices: Vec<Notice>,
    statistics: RunningStatistics,
    /// The conditions that this process watches.
    triggers: InProcessTriggers,
    ack: Ack,
}

impl ActiveSession {
    /// Creates the session called `name`, not yet applied.
    pub(super) fn new(name: String, context: &Context) -> Self {
        let ack = Ack::new(context.key(), context.info.name.clone());
        Self {
            name,
            file_version: None,
            spec: None,
            recording: None,
            last_status: Status::default(),
            endings: Vec::new(),
            abandoned: Vec::new(),
            deadline: Instant::now(),
            matcher: Matcher::default(),
            budget: BudgetWatch::default(),
            ended_counters: Counters::default(),
            ended_channels: ChannelCounters::default(),
            owner: None,
            owner_ended: false,
            errors: CurrentErrors::default(),
            end_error: None,
            rotations: 0,
            named: Named::default(),
            notices: Vec::new(),
            statistics: RunningStatistics::default(),
            triggers: InProcessTriggers::default(),
            ack,
        }
    }

    /// Reads the session's file and applies it if it changed. Returns `false` if the session was removed or is not for this process. `dir`
    /// is its directory. Waits for endings until `deadline`.
    pub(super) fn update(
        &mut self,
        dir: &PrivateDir,
        context: &Context,
        events_changed: bool,
        deadline: Instant,
    ) -> bool {
        self.deadline = deadline;
        self.owner_ended |= self.owner.as_ref().is_some_and(|owner| has_ended(owner));
        // `owner::is_over` also covers an owner that cannot be watched.
        let is_running = self.is_running();
        let is_over = |spec: &SessionSpec| is_running && owner::is_over(spec);
        // The program has closed the descriptor by which the owner is watched.
        let is_unwatched = !self.watches_owner();
        let over = (self.owner_ended && self.owner.is_some()) || self.spec.as_ref().is_some_and(is_over);
        (self.errors.read_error, self.errors.lacks_descriptors) = (None, false);
        match read_if_changed(dir, self.file_version) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remove_statistics();
                self.end();
                return false;
            }
            Err(error) => {
                if over {
                    self.remove_statistics();
                    self.end();
                }
                self.errors.lacks_descriptors = lacks_descriptors(&error);
                self.errors.read_error = Some(format!("session.toml cannot be read: {error}"));
            }
            Ok(None) if over || events_changed || is_unwatched => {
                if let Some(spec) = self.spec.take() {
                    self.apply(spec, context);
                }
            }
            Ok(None) if self.errors.is_retry_due() && context.attempts.pause().is_zero() => {
                let began = Instant::now();
                if let Some(spec) = self.spec.take() {
                    self.apply(spec, context);
                }
                context.attempts.add(began);
            }
            Ok(None) => {
                if let Some(recording) = &mut self.recording {
                    recording.dump_state(Round::New);
                }
            }
            Ok(Some((version, bytes, author))) => {
                self.file_version = Some(version);
                let author = author.for_session(&self.name, || SessionSpec::written_for(&bytes));
                match SessionSpec::parse(&bytes) {
                    Ok(spec) if !spec.is_for(context.info.tag.as_deref()) => {
                        self.remove_statistics();
                        self.end();
                        return false;
                    }
                    Ok(spec) if !self.named.admits(&spec, author) => {
                        (self.ack.id, self.ack.generation) = (spec.id.clone(), spec.generation);
                        self.errors.parse_error = Some(refused(author));
                    }
                    Ok(spec) => {
                        if self.recording.is_none() && spec.state == State::Active {
                            files::reserve(dir, &context.entry);
                        }
                        self.errors.parsed();
                        self.apply(spec, context);
                    }
                    Err(error) => {
                        if let Some((id, generation)) = SessionSpec::identify(&bytes) {
                            (self.ack.id, self.ack.generation) = (id, generation);
                        }
                        self.errors.parse_error = Some(format!("session.toml: {error}"));
                    }
                }
            }
        }
        true
    }

    fn apply(&mut self, spec: SessionSpec, context: &Context) {
        if self.ack.id != spec.id {
            self.remove_statistics();
            self.end();
            self.abandon();
            (self.ended_counters, self.ended_channels) = (Counters::default(), ChannelCounters::default());
            self.matcher = Matcher::default();
            self.budget = BudgetWatch::default();
            self.ack.outputs.clear();
            (self.ack.over_budget, self.ack.times_over_budget) = (Vec::new(), 0);
            self.ack.state_dumps.clear();
            (self.ack.rotated, self.rotations) = (None, spec.rotations);
            self.owner_ended = false;
        }
        // Watched before the check below, so that the end of the owner from now on wakes the agent.
        let owner = spec.owner.filter(|_| !self.owner_ended);
        let owner = owner.map(|owner| watch(owner, &context.sessions.join(&self.name)));
        self.owner_ended |= matches!(owner, Some(Watched::Ended));
        let is_over = self.owner_ended || owner::is_over(&spec);
        self.ack.id.clone_from(&spec.id);
        // While the current file cannot be parsed, its generation is acknowledged, not that of the version in force.
        if self.errors.parse_error.is_none() {
            self.ack.generation = spec.generation;
        }
        self.errors.clear_apply_error();
        self.end_error = None;
        let Matched { mut events, rules, notices, statistics } =
            self.matcher.run(&spec, context.key(), &context.info.executable, &context.events);
        self.ack.rules = rules.into_iter().map(|rule| rule.map(rule_ack)).collect();
        self.notices = notices;
        if !spec.sinks.is_empty() && PrivateDir::has_left_root() {
            self.notices.push(Notice::ChangedRoot { pid: std::process::id() });
        }
        self.budget.follow(spec.budget.as_ref());
        events.retain(|event| !self.budget.is_off(&event.name));
        if spec.state == State::Active {
            (self.ack.over_budget, self.ack.times_over_budget) = self.budget.report();
        } else {
            // The events that the budget has disabled stay in the acknowledgement until the session records again.
            self.budget.reset();
        }
        if spec.state != State::Active || is_over {
            events.clear();
        }
        // A stopped session can be started by its triggers. For triggers that end, the actions are done first, while the rings exist.
        let may_act =
            |trigger: &&TriggerSpec| spec.state == State::Active || trigger.actions.contains(&TriggerAction::Start);
        let triggers: Vec<_> = spec.triggers().flatten().filter(|trigger| !is_over && may_act(trigger)).collect();
        self.triggers.retain(&triggers);
        // Without a sink, a stopped session keeps its recording for snapshots, until it starts with other settings of its channels.
        let starts = spec.state == State::Active && self.spec.as_ref().is_some_and(|spec| spec.state == State::Stopped);
        if starts && self.recording.as_ref().is_some_and(|recording| !recording.pending_settings(&spec).is_empty()) {
            self.end();
        }
        self.ack.events = events.iter().map(|event| &event.name).collect::<BTreeSet<_>>().len();
        let is_taken = !spec.sinks.is_empty() || spec.drain == DrainedBy::Recorder;
        if is_over || (spec.state == State::Stopped && is_taken) {
            self.end();
        } else {
            self.record(&spec, &events, context);
        }
        self.compute(&spec, statistics, is_over, context);
        self.watch(&spec, &triggers, context);
        self.rotate(spec.rotations);
        // A session that does not record here has nothing to end, and uses no descriptor of the program.
        self.owner = match owner {
            Some(Watched::Alive(fd)) if !is_over && self.is_running() => Some(fd),
            _ => None,
        };
        self.spec = Some(spec);
    }

    /// Computes these statistics while the session is active.
    fn compute(&mut self, spec: &SessionSpec, planned: Vec<PlannedStatistic>, is_over: bool, context: &Context) {
        if is_over {
            self.remove_statistics();
        } else if spec.state == State::Active {
            let session = context.sessions.join(&self.name);
            let home = Home { session: Some(&session), process: &context.entry, ring_memory: spec.limits.memory };
            let errors = self.statistics.follow(home, planned);
            if !errors.is_empty() {
                self.errors.fail(errors.join("; "), Retry::Later);
            }
        } else {
            self.statistics.stop();
        }
    }

    /// Ends the statistics, and removes their files: the session is over.
    pub(super) fn remove_statistics(&mut self) {
        self.statistics.remove();
    }

    /// Records these events, or keeps the error.
    fn record(&mut self, spec: &SessionSpec, events: &[PlannedEvent], context: &Context) {
        if let Some(recording) = &mut self.recording {
            // Events can be disabled with any channels.
            if !events.is_empty() && recording.needs_restart_for(spec) {
                let text = "a session that is drained by another process keeps the channels with which it began; changed \
                            channels apply when it records again";
                self.errors.fail(text.to_owned(), Retry::WhenAwake);
                return;
            }
            let Changed { more_events, notices, errors } = recording.follow(spec, events);
            self.notices.extend(notices);
            recording.dump_state(if more_events { Round::All } else { Round::New });
            self.acknowledge_outputs();
            if !errors.is_empty() {
                let retry = errors.iter().map(retry_after).find(|retry| *retry != Retry::WhenAwake).unwrap_or_default();
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                self.fail(spec, errors.join("; "), retry);
            }
            return;
        }
        if events.is_empty() {
            return;
        }
        if self.endings.len() >= MAX_ENDINGS {
            self.errors.fail(
                format!("the sinks of {MAX_ENDINGS} earlier recordings are blocked; recording starts when one of them has finished"),
                Retry::WhenAwake,
            );
            return;
        }
        let mut started = self.start(spec, events, context);
        // Another process may have created a file of the same name between the check and the start.
        if started.is_err() && spec.sinks.iter().any(|sink| matches!(sink, SinkSpec::Dt(dt) if dt.path.is_file())) {
            started = self.start(spec, events, context);
        }
        if let Err(error) = started {
            self.fail(spec, error.to_string(), retry_after(&error));
        }
    }

    /// Keeps an error. If this program was built without a sink, a retry cannot succeed.
    fn fail(&mut self, spec: &SessionSpec, error: String, retry: Retry) {
        let is_final = spec.sinks.iter().any(|sink| SinkFeature::missing(sink).is_some());
        self.errors.fail(error, if is_final { Retry::Never } else { retry });
    }

    /// Starts the recording.
    fn start(&mut self, spec: &SessionSpec, events: &[PlannedEvent], context: &Context) -> Result<(), SessionError> {
        let builder = SessionBuilder::from_spec(&self.name, spec.clone())
            .dir(context.sessions.join(&self.name))
            .rings_at_first(context.initial_rings())
            .sink_timeout(SINK_TIMEOUT)
            .trace_name(context.trace_name());
        let mut recording = builder.record(events, context.event_capacity(), Vec::new())?;
        context.recordings.add(&recording);
        recording.dump_state(Round::All);
        self.ack.rings = recording.ring_dir().map(std::path::Path::to_owned);
        (self.recording, self.last_status) = (Some(recording), Status::default());
        self.acknowledge_outputs();
        Ok(())
    }

    /// Stores the paths of the sinks' traces and the addresses of their servers in the acknowledgement; traces of removed sinks stay
    /// listed.
    fn acknowledge_outputs(&mut self) {
        let outputs = || self.recording.iter().flat_map(Recording::outputs);
        let new: Vec<_> = outputs().filter_map(|output| output.path.clone()).collect();
        self.ack.servers = outputs().filter_map(|output| output.server).collect();
        let known = &mut self.ack.outputs;
        known.extend(new.into_iter().filter(|path| !known.contains(path)).collect::<Vec<_>>());
    }

    /// Rotates the traces if `number` is a new request.
    fn rotate(&mut self, number: u64) {
        let is_new = std::mem::replace(&mut self.rotations, number) != number;
        let Some(recording) = self.recording.as_ref().filter(|_| is_new) else { return };
        let (chunks, error) = match recording.rotate() {
            Ok(chunks) => (chunks, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        self.ack.rotated = Some(RotationResult::new(number, chunks, error));
    }

    /// Returns whether this process records or computes statistics for it.
    pub(super) fn is_running(&self) -> bool {
        self.recording.is_some() || self.statistics.len() > 0
    }

    /// Returns whether its file could not be read at the last scan because the process may not open another file.
    pub(super) const fn lacks_descriptors(&self) -> bool {
        self.errors.lacks_descriptors
    }

    /// When to try again to apply the session, if that failed.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        self.errors.retry_in()
    }

    /// Returns whether the session has a budget to enforce.
    pub(super) fn has_budget(&self) -> bool {
        self.recording.is_some() && self.ack.events > 0 && self.spec.as_ref().is_some_and(|spec| spec.budget.is_some())
    }

    /// Compares the session's cost with its budget, and disables an event if the budget is exceeded; returns the generation and the message
    /// to log.
    pub(super) fn check_budget(&mut self, context: &Context) -> Option<(u64, String)> {
        let spec = self.spec.take()?;
        let usage = self.recording.as_ref().and_then(Recording::usage);
        let over = spec.budget.as_ref().zip(usage).and_then(|(budget, usage)| {
            let over = self.budget.check(budget, Instant::now(), usage)?;
            Some((spec.generation, format!("budget: {over}")))
        });
        if over.is_some() {
            self.apply(spec, context);
        } else {
            self.spec = Some(spec);
        }
        over
    }

    /// Returns whether the descriptor that becomes readable when the owner ends is still open, or there is no owner. The program may have
    /// closed it.
    pub(super) fn watches_owner(&self) -> bool {
        self.owner.as_ref().is_none_or(|owner| owner.is_open())
    }

    /// Returns the descriptor that becomes readable when the owner ends.
    pub(super) fn owner(&self) -> Option<BorrowedFd<'_>> {
        self.owner.as_ref().and_then(|owner| owner.get().ok()).map(AsFd::as_fd)
    }
}

/// Returns when to retry after the error.
const fn retry_after(error: &SessionError) -> Retry {
    match error {
        // There may be space later.
        SessionError::Start(_) | SessionError::Sink { .. } => Retry::Later,
        SessionError::NoChannelLeft { needed, .. } => Retry::WithChannels(*needed),
        _ => Retry::WhenAwake,
    }
}

/// Returns the acknowledgement of one rule.
fn rule_ack(rule: Result<usize, RuleError>) -> RuleAck {
    rule.map_or_else(|error| RuleAck::Unsupported(error.problem.to_string()), RuleAck::Events)
}
