//! One session in this process. The sessions that a program starts in code, those that the agent reads from `session.toml`, and the one that
//! `TRACEPOINT` requests at program start have the same life.
//!
//! ```text
//!                      start                               end
//!   no recording ──────────────────▶ recording ◀──┐ ─────────────────▶ ended ────▶ counted, when its sinks finish
//!        ▲                                └───────┘ change                │
//!        └────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | transition | method | called by | if it fails |
//! |---|---|---|---|
//! | start | [`apply`](RunningSession::apply) | `SessionBuilder::start`, agent | what was made is removed |
//! | change | [`apply`](RunningSession::apply), also after `check_budget` | [`Session`](super::Session), agent | see below |
//! | end | [`apply`](RunningSession::apply), `remove`, `begin_removal`, `begin_end` | agent | the error is in [`EndedRecordings`] |
//! | end | `take_recording` | `Session::stop`, or its drop | `stop` returns the error |
//!
//! The caller owns the session: a `Session` calls under its lock, the agent on its thread. Other threads use the
//! [`SharedRecording`](super::SharedRecording), which waits for no lock of the session. A `Session` changes its sinks and adds channels
//! directly in the [`Recording`], because a sink may be an object.
//!
//! **Order of an application.** Rules are matched, and events that exceed the budget are left out. Triggers that end act first, while the
//! rings exist. Then events are recorded, statistics computed, state dumps run, and triggers watched: statistics count the events of a dump,
//! and triggers do not act on them. A stopped session without a sink keeps its recording for snapshots, with all events disabled.
//!
//! **Failures.** A session in code is applied as a whole: `apply` returns after the first failure, and the caller applies the former
//! description again, or drops the session. For the agent each part is applied by itself. The failed parts are in the [`ApplyReport`], and
//! the agent tries again. A blocked sink delays an end until a deadline, and then the recording stays pending; while there are
//! [`MAX_PENDING`] of these, none is started. In a forked child nothing has an effect: threads, rings and files belong to the parent.

use super::ended::EndedRecordings;
use super::recording::Recording;
use super::{SessionError, Status};
use crate::budget::BudgetWatch;
use crate::event::{PlannedEvent, Program};
use crate::rule_match::{Matcher, RuleMatch};
use crate::session_dirs::SessionDirs;
use crate::state::Round;
use crate::statistics::RunningStatistics;
use crate::trigger::{InProcessTriggers, TriggerOwner, WatchResult};
use std::collections::HashSet;
use std::time::Instant;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::StateDumpStatus;
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_spec::{DrainedBy, SessionSpec, SpecError, TriggerAction, TriggerSpec};
use tracepoint_sinks::SinkError;

/// Maximum number of ended recordings with unfinished sinks when a new one starts: each still holds its rings, and the number of channels is
/// limited.
const MAX_PENDING: usize = 3;

/// The state that a description requests of a session in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// It records, computes its statistics, and watches its triggers.
    Active,
    /// It records nothing, and watches only the triggers that start it. The results of its statistics stay.
    #[default]
    Stopped,
    /// It was destroyed, or its owner has ended.
    Over,
}

/// The result of applying a description.
#[derive(Debug, Default)]
pub(crate) struct ApplyReport {
    /// Deviations of the recording from the description.
    pub(crate) notices: Vec<Notice>,
    /// The errors of the recording, and of rules whose statistics cannot be computed.
    pub(crate) errors: Vec<SessionError>,
    /// For each watched trigger its id, and the number of events or statistics that it watches, or the error.
    pub(crate) triggers: Vec<WatchResult>,
}

impl ApplyReport {
    /// Returns the first error.
    pub(crate) fn take_error(&mut self) -> Option<SessionError> {
        if !self.errors.is_empty() {
            return Some(self.errors.remove(0));
        }
        let (id, reason) = self.triggers.iter().find_map(|(id, watched)| Some((id, watched.as_ref().err()?)))?;
        Some(SessionError::Spec(SpecError::Invalid(format!("trigger `{id}`: {reason}"))))
    }
}

/// A session in this process. Dropping it ends it.
#[derive(Debug, Default)]
pub(crate) struct RunningSession {
    pub(crate) name: String,
    /// This process, if it has started the session in code.
    in_code: Option<ProcessKey>,
    /// `None` if it has no files, or, in code, has not started.
    dirs: Option<SessionDirs>,
    /// The description that was applied last.
    pub(crate) spec: Option<SessionSpec>,
    target: Target,
    matcher: Matcher,
    pub(crate) budget: BudgetWatch,
    /// Number of enabled events.
    pub(crate) events: usize,
    /// End before the statistics and the recording, because their actions need both.
    pub(crate) triggers: InProcessTriggers,
    pub(crate) statistics: RunningStatistics,
    pub(crate) recording: Option<Recording>,
    /// The recording's status when it was last looked at.
    pub(crate) last_status: Status,
    pub(crate) ended: EndedRecordings,
}

impl RunningSession {
    /// Creates a session without a recording; `in_code` is this process if it starts the session in code.
    pub(crate) fn new(name: String, in_code: Option<ProcessKey>, dirs: Option<SessionDirs>) -> Self {
        Self { name, in_code, dirs, ..Self::default() }
    }

    /// Matches the rules of a description with the events of the program; [`apply`](Self::apply) uses the result.
    pub(crate) fn match_rules(&mut self, spec: &SessionSpec, program: Program<'_>) -> RuleMatch {
        self.matcher.run(spec, program)
    }

    /// Applies a description whose rules match these events. If a recording has to be started, calls `start` with the events.
    pub(crate) fn apply(
        &mut self,
        spec: &SessionSpec,
        target: Target,
        matched: RuleMatch,
        program: Program<'_>,
        start: impl FnOnce(&[PlannedEvent]) -> Result<Recording, SessionError>,
    ) -> ApplyReport {
        let RuleMatch { mut events, notices, statistics, .. } = matched;
        if target == Target::Over {
            self.recorder_has_ended();
        }
        let mut report = ApplyReport { notices, ..ApplyReport::default() };
        self.ended.error = None;
        self.budget.follow(spec.budget.as_ref());
        events.retain(|event| !self.budget.is_off(&event.name));
        if target != Target::Active {
            self.budget.reset();
            events.clear();
        }
        let may_act = |trigger: &&TriggerSpec| match target {
            Target::Active => true,
            Target::Stopped => trigger.actions.contains(&TriggerAction::Start),
            Target::Over => false,
        };
        let triggers: Vec<_> = spec.triggers().flatten().filter(may_act).collect();
        self.triggers.retain(&triggers);
        // A stopped session without a sink starts anew if settings of its channels have changed.
        let starts = target == Target::Active && self.target == Target::Stopped;
        if starts && self.recording.as_ref().is_some_and(|recording| !recording.pending_settings(spec).is_empty()) {
            self.end();
        }
        let is_taken = !spec.sinks.is_empty() || spec.drain == DrainedBy::Recorder;
        let round = if target == Target::Over || target == Target::Stopped && is_taken {
            self.end();
            None
        } else {
            self.record(spec, &events, start, &mut report)
        };
        if self.in_code.is_some() && !report.errors.is_empty() {
            return report;
        }
        self.events = events.iter().map(|event| &event.name).collect::<HashSet<_>>().len();
        let failed = match target {
            Target::Active => self.statistics.follow(self.dirs.as_ref(), spec.limits.memory, statistics),
            Target::Stopped => {
                self.statistics.stop();
                Vec::new()
            }
            Target::Over => {
                self.statistics.remove();
                Vec::new()
            }
        };
        report.errors.extend(failed.into_iter().map(SessionError::Statistic));
        if self.in_code.is_some() && !report.errors.is_empty() {
            return report;
        }
        if let Some((recording, round)) = self.recording.as_mut().zip(round) {
            recording.dump_state(round);
        }
        report.triggers = self.watch(&triggers, program);
        self.target = target;
        self.spec = Some(spec.clone());
        report
    }

    /// Records these events. Returns the state dumps that are due then.
    fn record(
        &mut self,
        spec: &SessionSpec,
        events: &[PlannedEvent],
        start: impl FnOnce(&[PlannedEvent]) -> Result<Recording, SessionError>,
        report: &mut ApplyReport,
    ) -> Option<Round> {
        if let Some(recording) = &mut self.recording {
            // Events can be disabled with any channels.
            if !events.is_empty() && recording.needs_restart_for(spec) {
                report.errors.push(SessionError::KeepsChannels);
                return None;
            }
            let changes = recording.follow(spec, events);
            report.notices.extend(changes.notices);
            report.errors.extend(changes.errors);
            return Some(if changes.more_events { Round::All } else { Round::New });
        }
        if events.is_empty() && self.in_code.is_none() {
            return None;
        }
        if self.ended.pending.len() >= MAX_PENDING {
            report.errors.push(SessionError::SinksBlocked(MAX_PENDING));
            return None;
        }
        match start(events) {
            Ok(recording) => {
                self.dirs = self.dirs.take().or_else(|| recording.dirs());
                (self.recording, self.last_status) = (Some(recording), Status::default());
                Some(Round::All)
            }
            Err(error) => {
                report.errors.push(error);
                None
            }
        }
    }

    /// Watches the conditions of these triggers that this process detects itself.
    fn watch(&mut self, wanted: &[&TriggerSpec], program: Program<'_>) -> Vec<WatchResult> {
        let Some(run_dir) = self.dirs.as_ref().and_then(|dirs| dirs.run_dir.clone()) else { return Vec::new() };
        let owner = TriggerOwner { run_dir, session: self.name.clone(), process: self.in_code };
        let channels = self.recording.as_ref().map(Recording::channels).unwrap_or_default();
        self.triggers.follow(&owner, wanted, program, &channels, &self.statistics.live())
    }

    /// Compares the cost of the recording with the budget of the session. Returns how the budget is exceeded: then the description has to be
    /// applied again, which disables an event.
    pub(crate) fn check_budget(&mut self) -> Option<String> {
        let budget = self.spec.as_ref()?.budget.as_ref()?;
        let usage = self.recording.as_ref()?.usage()?;
        self.budget.check(budget, Instant::now(), usage).map(ToString::to_string)
    }

    /// Records that the owner of the session has ended, which drains the rings of a recording from outside.
    pub(crate) fn recorder_has_ended(&self) {
        self.recording.iter().for_each(Recording::recorder_has_ended);
    }

    /// Ends the recording, if there is one. Its outputs are complete on return if its sinks finish before the deadline of
    /// [`ended`](Self::ended).
    fn end(&mut self) {
        if self.begin_end() {
            self.ended.wait_until(self.ended.deadline.unwrap_or_else(Instant::now));
        }
    }

    /// Disables the events, and lets the sinks finish in the background. Returns `false` if nothing is recorded.
    pub(crate) fn begin_end(&mut self) -> bool {
        self.events = 0;
        self.budget.reset();
        let Some(recording) = self.recording.take() else { return false };
        let before = std::mem::take(&mut self.last_status);
        let last_status = recording.status_at_once().unwrap_or(before);
        self.ended.begin(recording, last_status);
        true
    }

    /// Ends the triggers and the recording, and removes the files of the statistics: the session was removed, or is not for this process.
    pub(crate) fn remove(&mut self) {
        self.end_triggers_and_statistics();
        self.end();
    }

    /// Ends the triggers, removes the files of the statistics, and lets the sinks finish in the background.
    pub(crate) fn begin_removal(&mut self) {
        self.end_triggers_and_statistics();
        self.begin_end();
    }

    /// Triggers first: their last actions take place while there are statistics and rings.
    fn end_triggers_and_statistics(&mut self) {
        self.triggers = InProcessTriggers::default();
        self.statistics.remove();
    }

    /// Forgets everything about the session: another one has its name. The recording must have ended.
    pub(crate) fn renew(&mut self) {
        self.ended.renew();
        (self.matcher, self.budget) = (Matcher::default(), BudgetWatch::default());
    }

    /// Ends triggers and statistics, and takes the recording, which the caller ends.
    pub(super) fn take_recording(&mut self) -> Option<Recording> {
        self.end_triggers_and_statistics();
        self.recording.take()
    }

    /// Runs the state dumps that were registered since the last round.
    pub(crate) fn dump_new_state(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.dump_state(Round::New);
        }
    }

    /// Looks at the recording again; an error if a sink blocks for longer than the caller waits.
    pub(crate) fn update_status(&mut self) -> Result<(), SinkError> {
        if let Some(recording) = &self.recording {
            self.last_status = recording.status_in_time()?;
        }
        Ok(())
    }

    /// Returns the status of the state dumps of the recording, or else of the last one.
    pub(crate) fn state_dumps(&self) -> Vec<StateDumpStatus> {
        self.recording.as_ref().map_or_else(|| self.ended.state_dumps.clone(), Recording::state_dumps)
    }

    /// Returns whether this process records or computes statistics for it.
    pub(crate) fn is_running(&self) -> bool {
        self.recording.is_some() || self.statistics.len() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecordingSettings;
    use super::*;
    use crate::event::all_events;
    use crate::state::state_dump;
    use std::time::Duration;
    use tracepoint_core::channel::Channel;
    use tracepoint_probes::snapshot::Results;
    use tracepoint_session_spec::Rule;

    tracepoint_core::define_trace! {
        provider = "life";
        connection(n: u64) { n: u64 = n }
    }

    fn apply(session: &mut RunningSession, spec: &SessionSpec, target: Target) -> ApplyReport {
        let events = all_events(tracepoint_core::markers(), &mut Vec::new());
        let program = Program { key: ProcessKey::of_this_process(), executable: "/bin/life", events: &events };
        let matched = session.match_rules(spec, program);
        let start = |events: &[PlannedEvent]| {
            let mut settings = RecordingSettings::new("life".to_owned(), spec.clone());
            settings.place.in_memory = true;
            Recording::start(settings, events, 4, &mut Vec::new())
        };
        session.apply(spec, target, matched, program, start)
    }

    #[test]
    fn a_session_starts_stops_and_ends() -> Result<(), Box<dyn std::error::Error>> {
        let _dump = state_dump("connections", |_| tracepoint_core::trace!(connection(1)));
        let mut spec = SessionSpec::new();
        spec.channel = (&Channel::overwrite(64 << 10).at_first(1)).into();
        spec.add_rule(&Rule::new("life:connection").statistic("count").record())?;
        let mut session = RunningSession::new("life".to_owned(), None, None);
        assert!(apply(&mut session, &spec, Target::Stopped).errors.is_empty());
        assert!(session.recording.is_none() && !session.is_running(), "a stopped session starts nothing");

        assert!(apply(&mut session, &spec, Target::Active).errors.is_empty());
        assert_eq!((session.events, session.statistics.len(), session.recording.is_some()), (1, 1, true));
        let results = session.statistics.results().remove(0).snapshot.results;
        assert!(matches!(&results, Results::Count(rows) if rows.all == Some(1)), "of the dump: {results:?}");

        apply(&mut session, &spec, Target::Stopped);
        assert!(session.recording.is_some(), "kept for snapshots, because there is no sink");
        assert_eq!((session.events, session.statistics.len()), (0, 0));
        apply(&mut session, &spec, Target::Active);
        session.ended.deadline = Some(Instant::now() + Duration::from_secs(60));
        apply(&mut session, &spec, Target::Over);
        assert!(session.recording.is_none() && session.ended.pending.is_empty());
        assert_eq!(session.ended.counters.recorded, 6, "two dumps of an event between two others");
        Ok(())
    }
}
