//! Setting and firing triggers.
//!
//! ```text
//!   trigger_fire ──▶ connect to the socket ──▶ message ──▶ answer                        with a listener
//!                          │ no listener         │ no answer within 30 s, or closed
//!                          ▼                     ▼
//!                     TriggerRunner, on the session directories beside the socket        no occurrence is lost
//! ```
//!
//! A listener that was killed or stopped after it had received a message may have acted on it. In that case the actions are done twice,
//! rather than not at all.

use super::programs::Programs;
use crate::controller::{Controller, NamedSession};
use fileguard::GuardedFd;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_core::internal::nearest_names;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::layout::SESSIONS;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::store::SessionStore;
use tracepoint_session_io::trigger::connection::{NOTIFY, connect_to, exchange};
use tracepoint_session_io::trigger::in_code::{self, ProcessTriggers};
use tracepoint_session_io::trigger::state::{self, TriggerState};
use tracepoint_session_io::trigger::{
    ANSWER_TIMEOUT, ActionContext, CoreDump, FireOutcome, TriggerError, TriggerRunner,
};
use tracepoint_session_spec::{DrainedBy, Limit, Threshold, TriggerAction, TriggerCondition, TriggerSpec};

/// Maximum time to wait for a place in the queue of a listener.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time that the firing process waits for programs that it has started.
const PROGRAMS_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of [`trigger_set`]; the defaults are those of [`TriggerSpec::new`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TriggerOptions {
    /// As [`TriggerSpec::id`].
    pub id: Option<String>,
    /// Further actions, done after the first.
    pub then: Vec<TriggerAction>,
    /// As [`TriggerSpec::every`].
    pub every: Option<u64>,
    /// As [`TriggerSpec::once_after`].
    pub once_after: Option<u64>,
    /// As [`TriggerSpec::limit`].
    pub limit: Option<Limit>,
    /// As [`TriggerSpec::before`].
    pub before: Option<Duration>,
    /// As [`TriggerSpec::after`].
    pub after: Option<Duration>,
    /// As [`TriggerSpec::keep`].
    pub keep: Option<u32>,
    /// As [`TriggerSpec::max_size`], in bytes.
    pub max_size: Option<u64>,
}

impl TriggerOptions {
    fn spec(&self, when: TriggerCondition, action: TriggerAction) -> TriggerSpec {
        let mut spec = TriggerSpec::new(when, action);
        spec.id = self.id.clone().unwrap_or_default();
        spec.actions.extend(self.then.iter().cloned());
        (spec.every, spec.once_after, spec.limit) = (self.every, self.once_after, self.limit);
        (spec.before, spec.after) = (self.before, self.after);
        spec.keep = self.keep.unwrap_or(spec.keep);
        spec.max_size = self.max_size.unwrap_or(spec.max_size);
        spec
    }
}

/// Sets a trigger on a session: `action` is done whenever `when` occurs, also for processes that start later. Returns the trigger's id; if
/// the session has an equal trigger, that trigger's id.
///
/// # Errors
///
/// [`TriggerError::Control`]: the session does not exist, or the trigger is invalid; [`TriggerError::NoStatistic`]: no rule of the session
/// computes the statistic of the condition.
pub fn trigger_set(
    session: &NamedSession<'_>,
    when: TriggerCondition,
    action: TriggerAction,
    options: &TriggerOptions,
) -> Result<String, TriggerError> {
    if let TriggerCondition::Statistic(threshold) = &when {
        require_statistic(session, threshold)?;
    }
    let what = format!("trigger {when}");
    let trigger = options.spec(when, action);
    let (mut id, mut is_new) = (String::new(), true);
    session.change(&what, |spec| {
        let before = spec.triggers().count();
        id = spec
            .add_trigger(&trigger)
            .map_err(|error| ControlError::SessionSpec { session: session.name().to_owned(), error })?;
        is_new = spec.triggers().count() > before;
        Ok(())
    })?;
    if is_new {
        state::create(&session.dir()?, &id).map_err(ControlError::from)?;
    }
    Ok(id)
}

/// Fails unless a rule of the session computes the statistic of this condition.
fn require_statistic(session: &NamedSession<'_>, condition: &Threshold) -> Result<(), TriggerError> {
    let (wanted, spec) = (condition.statistic.to_string(), session.spec()?);
    let computed: BTreeSet<_> = spec.rules().flatten().filter_map(|rule| Some(rule.computes()?.to_string())).collect();
    if computed.contains(&wanted) {
        return Ok(());
    }
    let known = match computed.len() {
        0 => "it computes none".to_owned(),
        _ => format!("it computes {}", computed.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")),
    };
    let known = match &nearest_names(&wanted, computed.iter().map(String::as_str))[..] {
        [] => known,
        nearest => format!("{known}; did you mean {}?", nearest.join(" or ")),
    };
    Err(TriggerError::NoStatistic { session: session.name().to_owned(), statistic: wanted, known })
}

/// Removes a trigger of a session, and its state. Its snapshots stay.
///
/// # Errors
///
/// [`TriggerError::NoTrigger`] if the session has no trigger with this id; [`TriggerError::Control`] if there is no such session.
pub fn trigger_remove(session: &NamedSession<'_>, id: &str) -> Result<(), TriggerError> {
    let mut known = None;
    session.change(&format!("untrigger {id}"), |spec| {
        if !spec.remove_trigger(id) {
            known = Some(spec.triggers().flatten().map(|trigger| trigger.id.clone()).collect::<Vec<_>>());
        }
        Ok(())
    })?;
    if let Some(known) = known {
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("there are: {}", known.join(", ")) };
        return Err(TriggerError::NoTrigger { session: session.name().to_owned(), id: id.to_owned(), known });
    }
    state::remove(&session.dir()?, id);
    Ok(())
}

/// Fires the triggers of a type in all sessions of a run directory: the directory of `socket_path`, which ends in `/notify`, by default
/// this user's. A [listener](super::Listener) performs the actions if there is one; otherwise this process does. Returns when the actions
/// are done.
///
/// # Errors
///
/// [`TriggerError::NotFired`] if `when` is not [`TriggerCondition::CoreDump`]: other conditions are detected by the library, not reported.
/// [`TriggerError::NotPermitted`], [`TriggerError::Unsupported`], [`TriggerError::Malformed`] and [`TriggerError::ListenerAction`] are the
/// negative answers of a listener. [`TriggerError::Control`] is also returned if this process has more rights than the owner of the run
/// directory, whose sessions name outputs and programs. [`TriggerError::Action`] is the error of the first action that failed in this
/// process; the others were done. [`TriggerError::Socket`] and [`TriggerError::Control`]: the path or the run directory cannot be used.
#[expect(clippy::needless_pass_by_value, reason = "a condition without a value reads best by value")]
pub fn trigger_fire(
    when: TriggerCondition,
    socket_path: Option<&Path>,
    payload: &CoreDump,
) -> Result<FireOutcome, TriggerError> {
    if when != TriggerCondition::CoreDump {
        return Err(TriggerError::NotFired(when.kind()));
    }
    let path = socket_path.map_or_else(|| RunDir::place().join(NOTIFY), Path::to_owned);
    match connect_to(&path, Instant::now() + CONNECT_TIMEOUT) {
        Ok(socket) => match notify(&socket, payload) {
            Ok(0) => return Ok(FireOutcome::ByListener),
            Ok(answer) => return Err(TriggerError::answered(&path, answer)),
            // The listener was killed, or is stopped.
            Err(_) => {}
        },
        // There is no listener, or it is stopped.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock
            ) => {}
        Err(error) => return Err(TriggerError::socket(&path)(error)),
    }
    let run_dir = path.parent().unwrap_or(&path);
    if let Err(error) = fs::symlink_metadata(run_dir.join(SESSIONS)) {
        // A user without a run directory has no sessions.
        return if socket_path.is_none() && error.kind() == io::ErrorKind::NotFound {
            Ok(FireOutcome::Here(Vec::new()))
        } else {
            Err(TriggerError::socket(&path)(error))
        };
    }
    let run_dir = RunDir::open(run_dir)?;
    run_dir.trusted()?.check_beside_memory()?;
    let programs = Programs::new(false);
    let context = ActionContext { programs: Some(Arc::new(programs.clone())), listening: None };
    let runner = TriggerRunner::new(SessionStore::at(run_dir)?, context);
    let fired = FireOutcome::here(runner.run(payload)?);
    // Only their parent can get their exit statuses.
    programs.wait(PROGRAMS_TIMEOUT);
    fired
}

/// Sends a message and returns its answer. If the listener does not know the command with the signal, sends the one without.
fn notify(socket: &GuardedFd<OwnedFd>, core: &CoreDump) -> io::Result<i32> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let answer = exchange(socket, &core.to_message(), deadline)?;
    let mut plain = core.clone();
    (plain.signal, plain.time) = (None, None);
    if answer == -Errno::OPNOTSUPP.raw_os_error() && plain != *core {
        return exchange(socket, &plain.to_message(), deadline);
    }
    Ok(answer)
}

/// A trigger of a session, and its state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TriggerStatus {
    /// Its description.
    pub spec: TriggerSpec,
    /// Its state.
    pub state: TriggerState,
    /// True if a recorder takes the packets of its session, and watches the trigger's condition.
    pub is_recorded: bool,
}

impl NamedSession<'_> {
    /// Returns the session's triggers, in order. Triggers that this version does not understand are left out; [`SessionSpec::triggers`] has
    /// their errors.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    ///
    /// [`SessionSpec::triggers`]: tracepoint_session_spec::SessionSpec::triggers
    pub fn triggers(&self) -> Result<Vec<TriggerStatus>, ControlError> {
        let (spec, dir) = (self.spec()?, self.dir()?);
        // Such a session ends with its recorder.
        let is_recorded = spec.drain == DrainedBy::Recorder;
        let status =
            |spec: &TriggerSpec| TriggerStatus { spec: spec.clone(), state: state::read(&dir, &spec.id), is_recorded };
        Ok(spec.triggers().flatten().map(status).collect())
    }
}

impl Controller {
    /// Returns the triggers of the sessions that processes have started in code, with session and process.
    pub fn triggers_of_processes(&self) -> Vec<(String, ProcessKey, TriggerStatus)> {
        let of_process = |process: ProcessTriggers| {
            let ProcessTriggers { session, process, dir, triggers, .. } = process;
            triggers.into_iter().map(move |spec| {
                let state = state::read(&dir, &spec.id);
                (session.clone(), process, TriggerStatus { spec, state, is_recorded: false })
            })
        };
        in_code::all(&self.store).flat_map(of_process).collect()
    }
}
