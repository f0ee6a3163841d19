//! Checks whether the process that owns a session is alive, and therefore whether the session continues.

use tracepoint_run_dir::owner_pipe;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_session_spec::{Owner, SessionSpec, State};

/// Returns whether the process is known to have exited, judged by its id.
pub fn is_gone(owner: &Owner) -> bool {
    owner.is_comparable() && !owner.process.exists()
}

/// Returns whether the owner of the session in `dir` has exited; `None` if unknown.
fn has_ended(owner: &Owner, dir: &PrivateDir) -> Option<bool> {
    let pipe = owner.pipe.then(|| owner_pipe::watch(dir).ok()).flatten();
    pipe.map(|pipe| pipe.is_none()).or_else(|| owner.is_comparable().then(|| is_gone(owner)))
}

/// Returns whether the files of the session in `dir` can be removed: its controller no longer waits for acknowledgements of its end.
pub fn is_left_behind(spec: &SessionSpec, dir: &PrivateDir) -> bool {
    let owner_ended = spec.owner.and_then(|owner| has_ended(&owner, dir));
    owner_ended.unwrap_or(spec.state == State::Destroyed)
}

/// Returns whether the session is destroyed, or its owner has exited.
pub fn is_over(spec: &SessionSpec) -> bool {
    spec.state == State::Destroyed || spec.owner.is_some_and(|owner| is_gone(&owner))
}
