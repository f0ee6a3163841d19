//! Performs the actions of triggers.
//!
//! ```text
//!   condition occurred ─▶ state: counted; act? ─▶ actions, in order ─▶ state: results
//!                              │ no                 ▲        │ `run`
//!                              ▼                    │        └─▶ program ends ─▶ state: how
//!                         suppressed        later, with `--after`, by a listener
//! ```
//!
//! All actions are performed here: the listener uses [`TriggerRunner`], and so does any process that fires a trigger while there is no
//! listener. Several may run at the same time, in any processes; they synchronise through the [state](super::state) of each trigger.

use super::action::{Act, Subject};
use super::action_context::{ActionContext, PostponedActions};
use super::failure::ActionFailure;
use super::in_code;
use super::message::{CoreDump, FireRequest};
use super::occurrence::Occurrence;
use super::result::ActionResult;
use super::state::{self, Decision};
use crate::error::ControlError;
use crate::store::SessionStore;
use serde::Serialize;
use std::time::{Instant, SystemTime};
use tracepoint_reader::process::ProcessKey;
use tracepoint_session_spec::{State, TriggerAction, TriggerCondition, TriggerSpec};

/// The result of firing a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FiredTrigger {
    /// The session.
    pub session: String,
    /// The id of the trigger.
    pub trigger: String,
    /// The reason why it did not act, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<String>,
    /// True if its actions will be done later, by the listener.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub postponed: bool,
    /// The results of its actions.
    pub actions: Vec<ActionResult>,
}

impl FiredTrigger {
    /// The error number of the first action that failed.
    #[doc(hidden)]
    pub fn failed_with(&self) -> Option<i32> {
        self.actions.iter().find_map(|result| result.error.as_ref().and(result.errno))
    }
}

/// Performs the actions of the triggers in a run directory.
#[derive(Debug)]
pub struct TriggerRunner {
    store: SessionStore,
    context: ActionContext,
}

impl TriggerRunner {
    /// Creates a runner for the sessions of this run directory, including those that processes have started in code. It performs their
    /// actions in this context.
    pub const fn new(store: SessionStore, context: ActionContext) -> Self {
        Self { store, context }
    }

    /// Performs the actions of all triggers with the condition [`TriggerCondition::CoreDump`]: session by session, and within a session in the order of
    /// its triggers. Returns when the snapshots are complete; started programs may still run.
    ///
    /// A session that is damaged, or removed meanwhile, is left out. A failed action is recorded in its result and in the trigger's state,
    /// and the following actions are still performed.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn run(&self, core: &CoreDump) -> Result<Vec<FiredTrigger>, ControlError> {
        let (mut fired, occurrence) = (Vec::new(), Occurrence::core_dump(core));
        let is_wanted = |trigger: &TriggerSpec| trigger.when == TriggerCondition::CoreDump;
        for name in self.store.names()? {
            fired.extend(self.fire_in_session(&name, is_wanted, &occurrence));
        }
        for process in in_code::all(&self.store) {
            if process.is_alive() || process.process.pid == core.pid {
                let subject = Subject::of_process(process.session, process.process, process.dir, process.author);
                let wanted = process.triggers.iter().filter(|trigger| is_wanted(trigger));
                fired.extend(wanted.map(|trigger| self.perform(&subject, trigger, &occurrence)));
            }
        }
        Ok(fired)
    }

    /// Performs the actions of the triggers of a session for which `is_wanted` returns true. None if the session is gone or damaged.
    pub(super) fn fire_in_session(
        &self,
        session: &str,
        is_wanted: impl Fn(&TriggerSpec) -> bool,
        occurrence: &Occurrence,
    ) -> Vec<FiredTrigger> {
        let Some(session) = self.store.session(session) else { return Vec::new() };
        let (Ok((spec, author)), Ok(dir)) = (session.authored_spec(), session.dir()) else { return Vec::new() };
        let is_active = spec.state == State::Active;
        let subject = Subject::of_session(session, spec.id.clone(), dir, author, is_active);
        let wanted = spec.triggers().flatten().filter(|trigger| is_wanted(trigger));
        wanted.map(|trigger| self.perform(&subject, trigger, occurrence)).collect()
    }

    /// Performs the actions of one trigger of a session that a controller has created, whose condition has occurred. `None` if the session
    /// or the trigger was removed, or cannot be read.
    fn run_one(&self, session: &str, id: &str, occurrence: &Occurrence) -> Option<FiredTrigger> {
        self.fire_in_session(session, |trigger| trigger.id == id, occurrence).pop()
    }

    /// The same for a request, which may concern a session in code.
    pub fn fire_one(&self, request: &FireRequest) -> Option<FiredTrigger> {
        let Some(process) = request.process else {
            return self.run_one(&request.session, &request.trigger, &request.occurrence);
        };
        let (subject, triggers) = self.of_process(&request.session, process)?;
        let trigger = triggers.iter().find(|trigger| trigger.id == request.trigger)?;
        Some(self.perform(&subject, trigger, &request.occurrence))
    }

    /// Performs the actions of the triggers of a session with this condition.
    pub fn fire_when(&self, session: &str, when: &TriggerCondition, occurrence: &Occurrence) -> Vec<FiredTrigger> {
        self.fire_in_session(session, |trigger| trigger.when == *when, occurrence)
    }

    /// Performs actions that were postponed. `None` if the session is gone or damaged.
    pub fn resume(&self, postponed: &PostponedActions) -> Option<FiredTrigger> {
        let PostponedActions { session, process, trigger, author, occurrence } = postponed;
        let act = |subject: &Subject<'_>| self.act(subject, trigger, occurrence, SystemTime::now());
        if let Some(process) = process {
            let (subject, _) = self.of_process(session, *process)?;
            return Some(act(&subject.with_triggers_of(*author)));
        }
        let session = self.store.session(session)?;
        let (id, dir) = (session.spec().ok()?.id, session.dir().ok()?);
        Some(act(&Subject::of_session(session, id, dir, *author, true)))
    }

    fn of_process(&self, session: &str, process: ProcessKey) -> Option<(Subject<'_>, Vec<TriggerSpec>)> {
        let found = in_code::all(&self.store).find(|one| one.session == session && one.process == process)?;
        Some((Subject::of_process(found.session, process, found.dir, found.author), found.triggers))
    }

    fn perform(&self, subject: &Subject<'_>, trigger: &TriggerSpec, occurrence: &Occurrence) -> FiredTrigger {
        let mut fired = nothing_done(subject, trigger);
        let now = SystemTime::now();
        // A trigger that starts its session has to act while the session is stopped.
        let is_active = subject.is_active || trigger.actions.contains(&TriggerAction::Start);
        match state::begin(&subject.dir, trigger, is_active, occurrence.skipped, now) {
            Ok(Decision::Act) => {}
            Ok(Decision::Suppress(reason)) => {
                fired.suppressed = Some(reason.to_owned());
                return fired;
            }
            // Without the state, the number of snapshots would not be limited.
            Err(error) => {
                let failure = ActionFailure::from(&error.into());
                fired.actions.extend(trigger.actions.iter().map(|action| ActionResult::failed(action, &failure)));
                return fired;
            }
        }
        if let (Some(after), Some(listening)) = (trigger.after, &self.context.listening) {
            let elapsed = now.duration_since(occurrence.time).unwrap_or_default();
            let postponed = PostponedActions {
                session: subject.name.clone(),
                process: subject.process,
                trigger: trigger.clone(),
                author: subject.author,
                occurrence: occurrence.clone(),
            };
            listening.postpone(Instant::now() + after.saturating_sub(elapsed), postponed);
            fired.postponed = true;
            return fired;
        }
        self.act(subject, trigger, occurrence, now)
    }

    fn act(
        &self,
        subject: &Subject<'_>,
        trigger: &TriggerSpec,
        occurrence: &Occurrence,
        now: SystemTime,
    ) -> FiredTrigger {
        let run_dir = self.store.path();
        let mut act = Act::new(subject, trigger, occurrence, &self.context, run_dir, now);
        trigger.actions.iter().for_each(|action| act.perform(action));
        FiredTrigger { actions: act.end(), ..nothing_done(subject, trigger) }
    }
}

fn nothing_done(subject: &Subject<'_>, trigger: &TriggerSpec) -> FiredTrigger {
    FiredTrigger {
        session: subject.name.clone(),
        trigger: trigger.id.clone(),
        suppressed: None,
        postponed: false,
        actions: Vec::new(),
    }
}
