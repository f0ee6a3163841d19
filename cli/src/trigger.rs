//! The verbs of triggers.

pub(crate) mod listen;
pub(crate) mod set;
pub(crate) mod triggers;
pub(crate) mod untrigger;

use crate::failure::Failure;
use crate::session::controller;
use clap::Args;
use std::path::Path;
use tracepoint_control::trigger::{ActionResult, FiredTrigger, Watchers};
use tracepoint_control::{ControlError, Controller, NamedSession};

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
    fn controller(&self) -> Result<Controller, ControlError> {
        controller(self.pid)
    }

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

/// The result of an action.
fn outcome(result: &ActionResult) -> String {
    match (&result.error, &result.output) {
        (Some(error), _) => format!("{} failed: {error}", result.action),
        (None, Some(output)) => format!("{} {}", result.action, output.display()),
        (None, None) => format!("{} done", result.action),
    }
}

/// What a trigger did.
fn fired(fired: &FiredTrigger) -> String {
    let done = match &fired.suppressed {
        Some(reason) => format!("did not act: {reason}"),
        None => fired.actions.iter().map(outcome).collect::<Vec<_>>().join(", "),
    };
    format!("trigger {} of {}: {done}", fired.trigger, fired.session)
}

/// What is missing for core dumps to be noticed, if anything is.
fn unwatched(run_dir: &Path) -> Option<String> {
    let watchers = Watchers::of(run_dir);
    (!watchers.any()).then(|| {
        "nobody watches for core dumps: /proc/sys/kernel/core_pattern starts no helper that fires triggers, and no \
         `tracectl listen` runs"
            .to_owned()
    })
}
