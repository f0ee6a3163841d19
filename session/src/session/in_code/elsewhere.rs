//! The counterpart on systems other than Linux, where no other process sees a session started in code.

use super::SessionError;
use super::recording::Recording;
use super::rings::RingPlace;
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_spec::SessionSpec;

/// Returns `name`: no other session has it.
pub(super) const fn free_name(name: String, _: &RingPlace, _: &mut Vec<Notice>) -> String {
    name
}

/// Does nothing: a session with triggers is refused, because its rings are in memory.
pub(super) const fn write_triggers(_: &Recording, _: &SessionSpec) -> Result<(), SessionError> {
    Ok(())
}

/// Does nothing.
pub(super) const fn publish(_: &Recording, _: &SessionSpec) {}
