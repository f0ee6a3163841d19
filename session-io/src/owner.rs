//! The process that owns a session: whether it is alive, and therefore whether the session continues.

use tracepoint_reader::process::{self, ProcessKey};
use tracepoint_run_dir::owner_pipe;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_session_spec::{Owner, SessionSpec, State};

/// This process as an owner, which holds the pipe of its session or not.
pub fn this_process(pipe: bool) -> Owner {
    Owner { process: ProcessKey::of_this_process(), namespace: process::pid_namespace(), pipe }
}

/// Ends the session when this process exits or is killed.
pub fn end_with_this_process(spec: &mut SessionSpec) {
    spec.owner = Some(this_process(true));
}

/// Returns whether it is this process.
pub fn is_this_process(owner: &Owner) -> bool {
    is_comparable(owner) && owner.process == ProcessKey::of_this_process()
}

/// Returns whether its pid is valid in the pid namespace of this process.
pub fn is_comparable(owner: &Owner) -> bool {
    owner.namespace != 0 && owner.namespace == process::pid_namespace()
}

/// Returns whether the process is known to have exited, judged by its id.
pub fn is_gone(owner: &Owner) -> bool {
    is_comparable(owner) && !owner.process.exists()
}

/// Returns whether the owner of the session in `dir` has exited; `None` if unknown.
fn has_ended(owner: &Owner, dir: &PrivateDir) -> Option<bool> {
    let pipe = owner.pipe.then(|| owner_pipe::watch(dir).ok()).flatten();
    pipe.map(|pipe| pipe.is_none()).or_else(|| is_comparable(owner).then(|| is_gone(owner)))
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
