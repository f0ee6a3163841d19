//! Follows the file of one session: applies each version to the session in this process, and acknowledges the result.

mod acknowledge;

use super::context::Context;
use super::current_errors::{CurrentErrors, Retry};
use super::file_version::{FileVersion, read_if_changed};
use super::spare_descriptors::lacks_descriptors;
use super::trusted_outputs::TrustedOutputs;
use super::watch::{OwnerWatch, has_ended, watch};
use crate::event::PlannedEvent;
use crate::session::{Recording, RunningSession, SessionError, Target};
use crate::trigger::WatchError;
use fileguard::GuardedFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_run_dir::ack::{Ack, RotationResult, RuleAck, TriggerAck, files};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::private_dir::{PrivateDir, refused};
use tracepoint_session_io::owner;
use tracepoint_session_io::sink_features::SinkFeature;
use tracepoint_session_spec::{RuleError, SessionSpec, SinkSpec, State};

/// One session in this process, and its file.
#[derive(Debug, Default)]
pub(super) struct SessionFollower {
    name: String,
    file_version: Option<FileVersion>,
    pub(super) session: RunningSession,
    /// Watches the process that owns the session, if the session has an owner and has not ended.
    owner: Option<Arc<GuardedFd<OwnedFd>>>,
    owner_ended: bool,
    errors: CurrentErrors,
    /// The number of the last requested rotation.
    rotations: u64,
    trusted: TrustedOutputs,
    /// Notices of the last application.
    notices: Vec<Notice>,
    ack: Ack,
}

impl SessionFollower {
    /// Creates the follower of the session called `name`, which is not yet applied.
    pub(super) fn new(name: String, context: &Context) -> Self {
        let session = context.session(&name);
        let ack = Ack::new(context.key(), context.info.name.clone());
        Self { name, session, ack, ..Self::default() }
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
        self.session.ended.deadline = Some(deadline);
        self.owner_ended |= self.owner.as_ref().is_some_and(|owner| has_ended(owner));
        // `owner::is_over` also covers an owner that cannot be watched.
        let is_running = self.session.is_running();
        let is_over = |spec: &SessionSpec| is_running && owner::is_over(spec);
        // The program has closed the descriptor by which the owner is watched.
        let is_unwatched = !self.watches_owner();
        let over = (self.owner_ended && self.owner.is_some()) || self.session.spec.as_ref().is_some_and(is_over);
        if over {
            self.session.recorder_has_ended();
        }
        (self.errors.read_error, self.errors.lacks_descriptors) = (None, false);
        match read_if_changed(dir, self.file_version) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remove();
                return false;
            }
            Err(error) => {
                if over {
                    self.remove();
                }
                self.errors.lacks_descriptors = lacks_descriptors(&error);
                self.errors.read_error = Some(format!("session.toml cannot be read: {error}"));
            }
            Ok(None) if over || events_changed || is_unwatched => {
                self.apply_again(context);
            }
            Ok(None) if self.errors.is_retry_due() && context.attempts.pause().is_zero() => {
                let began = Instant::now();
                self.apply_again(context);
                context.attempts.add(began);
            }
            Ok(None) => {
                self.session.dump_new_state();
            }
            Ok(Some((version, bytes, author))) => {
                self.file_version = Some(version);
                let author = author.for_session(&self.name, || SessionSpec::written_for(&bytes));
                match SessionSpec::parse(&bytes) {
                    Ok(spec) if !spec.is_for(context.info.tag.as_deref()) => {
                        self.remove();
                        return false;
                    }
                    Ok(spec) if !self.trusted.admits(&spec, author) => {
                        (self.ack.id, self.ack.generation) = (spec.id.clone(), spec.generation);
                        self.errors.parse_error = Some(refused(author));
                    }
                    Ok(spec) => {
                        if self.session.recording.is_none() && spec.state == State::Active {
                            files::reserve(dir, &context.entry);
                        }
                        self.errors.parsed();
                        self.apply(&spec, context);
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

    fn apply_again(&mut self, context: &Context) {
        if let Some(spec) = self.session.spec.clone() {
            self.apply(&spec, context);
        }
    }

    fn apply(&mut self, spec: &SessionSpec, context: &Context) {
        if self.ack.id != spec.id {
            self.remove();
            self.session.renew();
            self.ack.outputs.clear();
            (self.ack.over_budget, self.ack.times_over_budget) = (Vec::new(), 0);
            (self.ack.rotated, self.rotations) = (None, spec.rotations);
            self.owner_ended = false;
        }
        // Watched before the check below, so that the end of the owner from now on wakes the agent.
        let owner = spec.owner.filter(|_| !self.owner_ended);
        let owner = owner.map(|owner| watch(owner, &context.session_dir(&self.name)));
        self.owner_ended |= matches!(owner, Some(OwnerWatch::Ended));
        let target = match spec.state {
            _ if self.owner_ended || owner::is_over(spec) => Target::Over,
            State::Active => Target::Active,
            _ => Target::Stopped,
        };
        self.ack.id.clone_from(&spec.id);
        // While the current file cannot be parsed, its generation is acknowledged, not that of the version in force.
        if self.errors.parse_error.is_none() {
            self.ack.generation = spec.generation;
        }
        self.errors.clear_apply_error();
        let mut matched = self.session.match_rules(spec, context.program());
        self.ack.rules = std::mem::take(&mut matched.rules).into_iter().map(|rule| rule.map(rule_ack)).collect();
        if !spec.sinks.is_empty() && PrivateDir::has_left_root() {
            matched.notices.push(Notice::ChangedRoot(std::process::id()));
        }
        let start = |events: &[PlannedEvent]| start(&self.name, spec, events, context);
        let report = self.session.apply(spec, target, matched, context.program(), start);
        self.notices = report.notices;
        if !report.errors.is_empty() {
            let is_final = spec.sinks.iter().any(|sink| SinkFeature::missing(sink).is_some());
            // Those of statistics come last, and can be retried in any case.
            let mut retries = report.errors.iter().rev().map(|error| retry_after(error, is_final));
            let retry = retries.find(|retry| *retry != Retry::WhenAwake).unwrap_or_default();
            let errors: Vec<_> = report.errors.iter().map(ToString::to_string).collect();
            self.errors.fail(errors.join("; "), retry);
        }
        // The events that the budget has disabled stay in the acknowledgement until the session records again.
        if target == Target::Active {
            (self.ack.over_budget, self.ack.times_over_budget) = self.session.budget.report();
        }
        let unsupported = spec.unsupported_triggers();
        self.ack.triggers = unsupported.map(|(id, error)| (id, TriggerAck::Unsupported(error.to_string()))).collect();
        self.ack.triggers.extend(report.triggers.into_iter().map(|(id, watched)| (id, trigger_ack(watched))));
        self.rotate(spec.rotations);
        // A session that does not record here has nothing to end, and uses no descriptor of the program.
        self.owner = match owner {
            Some(OwnerWatch::Alive(fd)) if target != Target::Over && self.session.is_running() => Some(fd),
            _ => None,
        };
    }

    /// Rotates the traces if `number` is a new request.
    fn rotate(&mut self, number: u64) {
        let is_new = std::mem::replace(&mut self.rotations, number) != number;
        let Some(recording) = self.session.recording.as_ref().filter(|_| is_new) else { return };
        let (chunks, error) = match recording.shared().rotate() {
            Ok(chunks) => (chunks, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        self.ack.rotated = Some(RotationResult::new(number, chunks, error));
    }

    /// Ends the session, and removes the files of its statistics.
    fn remove(&mut self) {
        self.owner = None;
        self.session.remove();
    }

    /// Ends the session, so that it can be removed: ends its triggers, removes the files of its statistics, disables the events, and lets the
    /// sinks finish in the background.
    pub(super) fn begin_removal(&mut self) {
        self.owner = None;
        self.session.begin_removal();
    }

    /// Disables the events, and lets the sinks finish in the background.
    pub(super) fn begin_end(&mut self) {
        self.owner = None;
        self.session.begin_end();
    }

    /// Returns whether sinks of ended recordings have not finished.
    pub(super) const fn is_ending(&self) -> bool {
        !self.session.ended.pending.is_empty()
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
        let Self { session, .. } = self;
        session.recording.is_some()
            && session.events > 0
            && session.spec.as_ref().is_some_and(|spec| spec.budget.is_some())
    }

    /// Compares the session's cost with its budget, and disables an event if the budget is exceeded; returns the generation and the message
    /// to log.
    pub(super) fn check_budget(&mut self, context: &Context) -> Option<(u64, String)> {
        let over = self.session.check_budget()?;
        self.apply_again(context);
        Some((self.session.spec.as_ref()?.generation, format!("budget: {over}")))
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

/// Starts the recording of a session.
fn start(
    name: &str,
    spec: &SessionSpec,
    events: &[PlannedEvent],
    context: &Context,
) -> Result<Recording, SessionError> {
    let start = || {
        let mut settings = context.settings(name, spec.clone());
        (settings.rings_at_first, settings.trace_name) = (Some(context.initial_rings()), Some(context.trace_name()));
        Recording::start(settings, events, context.event_capacity(), &mut Vec::new())
    };
    let mut started = start();
    // Another process may have created a file of the same name between the check and the start.
    if started.is_err() && spec.sinks.iter().any(|sink| matches!(sink, SinkSpec::Dt(dt) if dt.path.is_file())) {
        started = start();
    }
    started.inspect(|recording| context.recordings.add(recording))
}

/// Returns when to retry after the error.
const fn retry_after(error: &SessionError, is_final: bool) -> Retry {
    match error {
        SessionError::Statistic { .. } => Retry::Later,
        // When one of the sinks has finished, with whatever sinks.
        SessionError::SinksBlocked { .. } => Retry::WhenAwake,
        // This program was built without a sink.
        _ if is_final => Retry::Never,
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

/// Returns the acknowledgement of one trigger.
fn trigger_ack(watched: Result<Option<usize>, WatchError>) -> TriggerAck {
    let supported = |events: Option<usize>| events.map_or(TriggerAck::Watched, TriggerAck::Events);
    watched.map_or_else(|error| TriggerAck::Unsupported(error.to_string()), supported)
}
