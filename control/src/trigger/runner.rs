//! Performs the actions of triggers.
//!
//! This is the one place that does so: the listener, and whoever fires a trigger while there is no listener, both call
//! [`TriggerRunner::run`]. Several may run at the same time, in any processes; they meet in the [state](super::state) of each trigger.

use super::in_code;
use super::message::CoreDump;
use super::occurrence::Occurrence;
use super::snapshot::{self, Failure};
use super::state::{self, ActionResult, Decision};
use crate::controller::{ControlError, Controller, NamedSession};
use crate::private_dir::{DirError, PrivateDir};
use crate::spec::{Do, State, TriggerSpec, When};
use rustix::io::Errno;
use serde::Serialize;
use std::path::PathBuf;
use std::time::SystemTime;

/// What a trigger did when it was fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FiredTrigger {
    /// The session.
    pub session: String,
    /// The id of the trigger.
    pub trigger: String,
    /// Why it did not act, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<String>,
    /// The results of its actions.
    pub actions: Vec<ActionResult>,
}

impl FiredTrigger {
    /// The error number of the first action that failed.
    pub(super) fn failed_with(&self) -> Option<i32> {
        self.actions.iter().find_map(|result| result.error.as_ref().and(result.errno))
    }
}

/// Performs the actions of the triggers in a run directory.
#[derive(Debug)]
pub struct TriggerRunner {
    controller: Controller,
}

impl TriggerRunner {
    /// For the sessions of this controller, and those that processes have started in code.
    pub const fn new(controller: Controller) -> Self {
        Self { controller }
    }

    /// Performs the actions of all triggers with the condition [`When::CoreDump`]: session by session, and in a session in the order of its
    /// triggers. Takes as long as the actions take.
    ///
    /// A session that is damaged, or removed meanwhile, is left out. A failed action is entered in its result and in the trigger's state, and
    /// the following actions are performed.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn run(&self, core: &CoreDump) -> Result<Vec<FiredTrigger>, ControlError> {
        let (mut fired, occurrence) = (Vec::new(), Occurrence::core_dump(core));
        for name in self.controller.sessions()? {
            let Ok(session) = self.controller.session(&name) else { continue };
            let (Ok(spec), Ok(dir)) = (session.spec(), session.dir()) else { continue };
            let owner = Owner { name, dir, session: Some(session), is_active: spec.state == State::Active };
            let wanted = spec.triggers().flatten().filter(|trigger| trigger.when == When::CoreDump);
            fired.extend(wanted.map(|trigger| owner.perform(trigger, &occurrence)));
        }
        for process in in_code::all(&self.controller) {
            if process.is_alive() || process.process.pid == core.pid {
                let owner = Owner { name: process.session, dir: process.dir, session: None, is_active: true };
                let wanted = process.triggers.iter().filter(|trigger| trigger.when == When::CoreDump);
                fired.extend(wanted.map(|trigger| owner.perform(trigger, &occurrence)));
            }
        }
        Ok(fired)
    }

    /// Performs the actions of one trigger of a session that a controller has created, whose condition has occurred. `None` if the session
    /// or the trigger was removed, or cannot be read.
    pub fn run_one(&self, session: &str, id: &str, occurrence: &Occurrence) -> Option<FiredTrigger> {
        let named = self.controller.session(session).ok()?;
        let (spec, dir) = (named.spec().ok()?, named.dir().ok()?);
        let trigger = spec.triggers().flatten().find(|trigger| trigger.id == id)?;
        let is_active = spec.state == State::Active;
        let owner = Owner { name: session.to_owned(), dir, session: Some(named), is_active };
        Some(owner.perform(trigger, occurrence))
    }
}

/// Whose triggers are performed: a session in the run directory, or a process with a session in code.
struct Owner<'a> {
    /// The name of the session.
    name: String,
    /// The directory of the session, or of the rings of the process.
    dir: PrivateDir,
    /// `None` for a session in code.
    session: Option<NamedSession<'a>>,
    is_active: bool,
}

impl Owner<'_> {
    fn perform(&self, trigger: &TriggerSpec, occurrence: &Occurrence) -> FiredTrigger {
        let mut fired = FiredTrigger {
            session: self.name.clone(),
            trigger: trigger.id.clone(),
            suppressed: None,
            actions: Vec::new(),
        };
        let now = SystemTime::now();
        let is_active = self.is_active || trigger.actions.contains(&Do::Start);
        match state::begin(&self.dir, trigger, is_active, occurrence.skipped, now) {
            Ok(Decision::Act) => {}
            Ok(Decision::Suppress(reason)) => {
                fired.suppressed = Some(reason.to_owned());
                return fired;
            }
            // Without the state nothing would bound the snapshots.
            Err(error) => {
                let failure = failure(&error.into());
                fired.actions.extend(trigger.actions.iter().map(|action| result(action, Err(&failure))));
                return fired;
            }
        }
        let (mut temporaries, mut snapshots) = (Vec::new(), Vec::new());
        for action in &trigger.actions {
            let done = match action {
                Do::Snapshot(output) => snapshot::reserve(output, occurrence, now).and_then(|reserved| {
                    temporaries.push(reserved.temporary.clone());
                    // If this cannot be entered, the directory stays should this process be killed now.
                    let _ = state::writing(&self.dir, trigger, reserved.temporary.clone(), now);
                    let kept = reserved.write(self.dir.path(), occurrence)?;
                    snapshots.push(kept.clone());
                    Ok(Some(kept.path))
                }),
                Do::Start => self.set_state(trigger, State::Active).map(|()| None),
                Do::Stop => self.set_state(trigger, State::Stopped).map(|()| None),
                action => {
                    let reason = format!("the action `{}` is not done by this version", action.name());
                    Err(Failure::new(&reason, Errno::OPNOTSUPP.raw_os_error()))
                }
            };
            fired.actions.push(result(action, done.as_ref().map(Clone::clone)));
        }
        // A session that was removed meanwhile has no state either.
        let _ = state::end(&self.dir, trigger, &mut fired.actions, &temporaries, snapshots);
        fired
    }

    fn set_state(&self, trigger: &TriggerSpec, state: State) -> Result<(), Failure> {
        let Some(session) = &self.session else {
            let reason = "a session in code is controlled by its program";
            return Err(Failure::new(&reason, Errno::OPNOTSUPP.raw_os_error()));
        };
        let verb = if state == State::Active { "start" } else { "stop" };
        let changed = session.change(&format!("{verb} by trigger {}", trigger.id), |spec| {
            spec.state = state;
            Ok(())
        });
        changed.map(drop).map_err(|error| failure(&error))
    }
}

fn result(action: &Do, done: Result<Option<PathBuf>, &Failure>) -> ActionResult {
    let (output, failure) = match done {
        Ok(output) => (output, None),
        Err(failure) => (None, Some(failure)),
    };
    let (error, errno) = failure.map(|Failure { reason, errno }| (reason.clone(), *errno)).unzip();
    ActionResult { action: action.name().to_owned(), output, error, errno }
}

fn failure(error: &ControlError) -> Failure {
    let errno = match error {
        ControlError::NoSession { .. } => Errno::NOENT.raw_os_error(),
        ControlError::NoRoom { .. } => Errno::NOSPC.raw_os_error(),
        ControlError::Dir(DirError::Io { source, .. }) => source.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
        _ => Errno::IO.raw_os_error(),
    };
    Failure::new(error, errno)
}
