//! Performs the actions of the triggers that a core dump fires.
//!
//! This is the one place that does so: the listener, and whoever fires a trigger while there is no listener, both call
//! [`TriggerRunner::run`]. Several may run at the same time, in any processes; they meet in the [state](super::state) of each trigger.

use super::in_code;
use super::message::CoreDump;
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

    /// Performs the actions of all triggers with this condition: session by session, and in a session in the order of its triggers. Takes as
    /// long as the snapshots take.
    ///
    /// A session that is damaged, or removed meanwhile, is left out. A failed action is entered in its result and in the trigger's state, and
    /// the following actions are performed.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn run(&self, when: When, core: &CoreDump) -> Result<Vec<FiredTrigger>, ControlError> {
        let mut fired = Vec::new();
        for name in self.controller.sessions()? {
            let Ok(session) = self.controller.session(&name) else { continue };
            let (Ok(spec), Ok(dir)) = (session.spec(), session.dir()) else { continue };
            let owner = Owner { name, dir, session: Some(session), is_active: spec.state == State::Active };
            let wanted = spec.triggers().flatten().filter(|trigger| trigger.when == when);
            fired.extend(wanted.map(|trigger| owner.perform(trigger, core)));
        }
        for process in in_code::all(&self.controller) {
            if process.is_alive() || process.process.pid == core.pid {
                let owner = Owner { name: process.session, dir: process.dir, session: None, is_active: true };
                let wanted = process.triggers.iter().filter(|trigger| trigger.when == when);
                fired.extend(wanted.map(|trigger| owner.perform(trigger, core)));
            }
        }
        Ok(fired)
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
    fn perform(&self, trigger: &TriggerSpec, core: &CoreDump) -> FiredTrigger {
        let mut fired = FiredTrigger {
            session: self.name.clone(),
            trigger: trigger.id.clone(),
            suppressed: None,
            actions: Vec::new(),
        };
        let now = SystemTime::now();
        match state::begin(&self.dir, trigger, self.is_active, now) {
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
                Do::Snapshot(output) => snapshot::reserve(output, core, now).and_then(|reserved| {
                    temporaries.push(reserved.temporary.clone());
                    // If this cannot be entered, the directory stays should this process be killed now.
                    let _ = state::writing(&self.dir, trigger, reserved.temporary.clone(), now);
                    let kept = reserved.write(self.dir.path(), core, now)?;
                    snapshots.push(kept.clone());
                    Ok(Some(kept.path))
                }),
                Do::Stop => self.stop(trigger).map(|()| None),
            };
            fired.actions.push(result(action, done.as_ref().map(Clone::clone)));
        }
        // A session that was removed meanwhile has no state either.
        let _ = state::end(&self.dir, trigger, &mut fired.actions, &temporaries, snapshots);
        fired
    }

    fn stop(&self, trigger: &TriggerSpec) -> Result<(), Failure> {
        let Some(session) = &self.session else {
            let reason = "a session in code is stopped by its program";
            return Err(Failure::new(&reason, Errno::OPNOTSUPP.raw_os_error()));
        };
        let stopped = session.change(&format!("stop by trigger {}", trigger.id), |spec| {
            spec.state = State::Stopped;
            Ok(())
        });
        stopped.map(drop).map_err(|error| failure(&error))
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
