//! Finds the rings that belong to an output of a sink: those of a process that was killed have events that the output lacks.

use std::path::{Path, PathBuf, absolute};
use tracepoint_run_dir::layout::SESSIONS;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_run_dir::session_dir::rings_of_output;

/// The directory of the rings from which a process that has died wrote to `output`, a CTF trace, a directory with chunks or traces, or a dt
/// file. `None` if there are none in the run directory, or the process still records, or a recorder still takes its packets.
///
/// Makes no directory. Costs a few system calls for each process in the run directory.
pub fn rings_behind(output: &Path) -> Option<PathBuf> {
    let output = output.canonicalize().or_else(|_| absolute(output)).ok()?;
    let sessions = RunDir::open(&RunDir::place()).ok()?.open_subdir(SESSIONS).ok()?;
    let names = sessions.names().ok()?;
    names.iter().find_map(|name| rings_of_output(&sessions.open_subdir(name).ok()?, &output))
}
