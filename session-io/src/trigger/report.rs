//! Performs the actions of a trigger whose condition has occurred in a traced process.

use super::action_context::ActionContext;
use super::connection::{NOTIFY, connect_to, exchange};
use super::error::TriggerError;
use super::message::FireRequest;
use super::result::ActionResult;
use super::runner::{FiredTrigger, TriggerRunner};
use crate::store::SessionStore;
use rustix::io::Errno;
use std::path::Path;
use std::time::{Duration, Instant};
use tracepoint_run_dir::rundir::RunDir;

/// Maximum time to wait for the answer of a listener, which answers when the actions are done.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a fired trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FireOutcome {
    /// A listener has done the actions of all sessions, without failures.
    ByListener,
    /// There was no listener: this process has done the actions, without failures.
    Here(Vec<FiredTrigger>),
}

/// Performs the actions of one trigger whose condition has occurred in this process: through the listener of the run directory if there is
/// one, otherwise in this process. Returns when the actions are done. A traced process starts no programs, and has no subscribers: without
/// a listener the actions `run` and `notify` fail. If this process by now has more rights than the owner of the run directory, no action is
/// done and no listener is notified.
///
/// # Errors
///
/// As `trigger_fire`.
pub fn trigger_report(run_dir: &Path, request: &FireRequest) -> Result<FireOutcome, TriggerError> {
    let run_dir = RunDir::open(run_dir)?;
    run_dir.trusted()?.check()?;
    let path = run_dir.path().join(NOTIFY);
    if let (Some(message), Ok(socket)) = (request.to_message(), connect_to(&path, Instant::now())) {
        match exchange(&socket, &message, Instant::now() + ANSWER_TIMEOUT) {
            Ok(0) => return Ok(FireOutcome::ByListener),
            // An older listener does not support the message.
            Ok(answer) if answer == -Errno::OPNOTSUPP.raw_os_error() => {}
            Ok(answer) => return Err(TriggerError::answered(&path, answer)),
            // The listener was killed, or is stopped.
            Err(_) => {}
        }
    }
    let runner = TriggerRunner::new(SessionStore::at(run_dir)?, ActionContext::default());
    FireOutcome::here(runner.fire_one(request).into_iter().collect())
}

impl FireOutcome {
    /// Returns the results in this process, or the error of the first action that failed.
    #[doc(hidden)]
    pub fn here(fired: Vec<FiredTrigger>) -> Result<Self, TriggerError> {
        fired.iter().find_map(FiredTrigger::failure).map_or(Ok(Self::Here(fired)), Err)
    }
}

impl FiredTrigger {
    /// Returns the error of its first action that failed.
    pub(super) fn failure(&self) -> Option<TriggerError> {
        let failed = |result: &ActionResult| {
            Some(TriggerError::Action {
                session: self.session.clone(),
                trigger: self.trigger.clone(),
                action: result.action.clone(),
                reason: result.error.clone()?,
                errno: result.errno.unwrap_or(Errno::IO.raw_os_error()),
            })
        };
        self.actions.iter().find_map(failed)
    }
}
