//! The data by which other processes see a session started in code: a name that no remotely controlled session has, and the session's
//! description in the directory of its rings. Only sessions whose rings are in the run directory are visible.

use super::SessionError;
use super::recording::Recording;
use super::rings::RingPlace;
use tracepoint_run_dir::layout::{SESSION, SESSIONS, TRIGGERS_FILE};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::owner::is_left_behind;
use tracepoint_session_spec::SessionSpec;

/// Returns the name of the session: `name`, or `name@PID` if a remotely controlled session is called `name`. The two would otherwise share
/// a directory, and their traces could not be told apart. The session is not refused, because the operator's session must not affect the
/// program.
pub(super) fn free_name(name: String, place: &RingPlace, notices: &mut Vec<Notice>) -> String {
    if !place.is_in_run_dir() || !is_taken(&name) {
        return name;
    }
    let recorded = format!("{name}@{}", std::process::id());
    notices.push(Notice::NameTaken { session: name, recorded: recorded.clone() });
    recorded
}

/// Returns whether there is a remotely controlled session of this name.
fn is_taken(name: &str) -> bool {
    let open = || RunDir::of_traced_process().ok()?.dir().open_subdir(SESSIONS).ok()?.open_subdir(name).ok();
    let Some(dir) = open() else { return false };
    match dir.read_file(SESSION, SessionSpec::MAX_SIZE) {
        Ok(bytes) => SessionSpec::parse(&bytes).map_or(true, |spec| !is_left_behind(&spec, &dir)),
        Err(_) => false,
    }
}

/// Writes the triggers, if there are any, next to the rings.
pub(super) fn write_triggers(recording: &Recording, spec: &SessionSpec) -> Result<(), SessionError> {
    let Some(dir) = recording.ring_dir().filter(|_| spec.triggers().next().is_some()) else { return Ok(()) };
    let process = dir.file_name().unwrap_or_default().to_string_lossy();
    let text = spec.triggers_to_toml(&format!("{}/{process}", recording.name())).map_err(SessionError::Spec)?;
    let written = PrivateDir::open(dir).and_then(|dir| {
        let written = dir.put_authored(TRIGGERS_FILE, text.as_bytes());
        written.map_err(|error| dir.failed("write", TRIGGERS_FILE, error))
    });
    written.map_err(|error| SessionError::Rings(error.into()))
}

/// Writes the current description next to the rings. If that fails, an older one stays.
pub(super) fn publish(recording: &Recording, spec: &SessionSpec) {
    if let Some(Ok(dir)) = recording.ring_dir().map(PrivateDir::open) {
        // Even an empty file marks the rings as those of a session in code.
        let _ = dir.replace(SESSION, spec.text().unwrap_or_default().as_bytes());
    }
}
