//! The verbs of triggers.

pub(crate) mod listen;
pub(crate) mod notifications;
pub(crate) mod set;
pub(crate) mod triggers;
pub(crate) mod untrigger;

use crate::failure::Failure;
use clap::Args;
use tracepoint_controller::trigger::{ActionResult, FiredTrigger, TriggerStatus, Watchers};
use tracepoint_controller::{Controller, NamedSession};

/// The session of a verb, which need not be named if there is only one.
#[derive(Debug, Args)]
struct SessionOption {
    /// The session [default: the only one there is]
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

impl SessionOption {
    fn session<'a>(&self, controller: &'a Controller) -> Result<NamedSession<'a>, Failure> {
        if let Some(name) = &self.session {
            return Ok(controller.session(name)?);
        }
        match &controller.sessions()?[..] {
            [name] => Ok(controller.session(name)?),
            [] => Err(Failure::Refused(
                "there is no session; create one with `tracectl create NAME -e RULE --start`".to_owned(),
            )),
            names => {
                let names = names.join(", ");
                Err(Failure::Refused(format!("there are several sessions: {names}; choose one with `-s NAME`")))
            }
        }
    }
}

fn outcome(result: &ActionResult) -> String {
    let ActionResult { action, output, pid, ended, note, error, .. } = result;
    let done = match (error, output, pid) {
        (Some(error), ..) => format!("{action} failed: {error}"),
        (None, Some(output), _) => format!("{action} {}", output.display()),
        (None, None, Some(pid)) => {
            format!("{action} process {pid}: {}", ended.as_deref().unwrap_or("it has not ended yet"))
        }
        (None, None, None) => format!("{action} done"),
    };
    note.as_ref().map_or_else(|| done.clone(), |note| format!("{done} ({note})"))
}

fn fired(fired: &FiredTrigger) -> String {
    let done = match &fired.suppressed {
        Some(reason) => format!("did not act: {reason}"),
        None if fired.postponed => "acts later, when the time after has passed".to_owned(),
        None => fired.actions.iter().map(outcome).collect::<Vec<_>>().join(", "),
    };
    format!("trigger {} of {}: {done}", fired.trigger, fired.session)
}

/// The missing precondition for a trigger to act, if any.
fn unwatched(watchers: &Watchers, session: &str, trigger: &TriggerStatus) -> Option<String> {
    watchers.missing(trigger).map(|missing| format!("trigger {} of {session}: {missing}", trigger.spec.id))
}
