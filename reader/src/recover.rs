//! Completes the session of a process that died: makes a CTF trace, with its account, of the rings that it left behind and
//! of what its sinks had kept.
//!
//! ```text
//!   metadata ───────────────────────────────▶ metadata
//!   outputs ──▶ packets that a sink had kept ─┐
//!                                             ├─▶ each once, by stream and number ─▶ CHANNEL_INSTANCE
//!   *.ring ───▶ packets that are there still ─┘   (open ones mended)
//!        └────▶ counters ───────────────────────▶ settled with what is committed ──▶ account/account.json
//! ```
//!
//! The account is written last, so that what was begun and not ended is never taken for whole. A process that lives can be
//! looked at in the same way; the account says that it is not complete then.

mod chunks;
mod error;
mod find;
mod liveness;
mod meter;
mod outputs;
mod packets;
mod process;
mod stream_file;
mod summary;
mod survey;
mod target;

use meter::Meter;
use std::path::Path;

pub(crate) use target::Target;

pub use error::RecoverError;
pub use summary::{FailedProcess, Progress, Recovered, RecoveredProcess};

/// Makes a trace in `out` of the process whose rings are in `dir`. Of several processes below `dir` each gets a directory in
/// `out`, called as its own.
///
/// ```no_run
/// let recovered = tracepoint_reader::recover("/run/user/1000/tracepoint/sessions/shop".as_ref(), "/tmp/shop".as_ref())?;
/// for process in &recovered.processes {
///     println!("{}: {} events", process.output.display(), process.records);
/// }
/// # Ok::<(), tracepoint_reader::RecoverError>(())
/// ```
///
/// # Errors
/// [`RecoverError::NoRings`] if there is nothing to recover, [`RecoverError::NotEmpty`] if there is something in `out`,
/// [`RecoverError::Write`] if it cannot be written, [`RecoverError::Read`] if nothing of what is there can be read. What is
/// damaged in a part is no error.
pub fn recover(dir: &Path, out: &Path) -> Result<Recovered, RecoverError> {
    recover_with(dir, out, |_| {})
}

/// The same, and `report` is told again and again how far it is.
///
/// # Errors
/// As [`recover`].
pub fn recover_with(dir: &Path, out: &Path, mut report: impl FnMut(Progress)) -> Result<Recovered, RecoverError> {
    let processes = find::processes(dir)?;
    let targets = find::targets(&processes, out);
    // Whatever becomes of the processes, a directory with something in it is left alone.
    Target::create(out)?;
    let mut recovered = Recovered::default();
    let mut first_error = None;
    for (index, (directory, target)) in processes.iter().zip(&targets).enumerate() {
        let meter = Meter::new(&mut report, index, processes.len());
        match process::recover(directory, target, meter) {
            Ok(process) => recovered.processes.push(process),
            Err(error @ RecoverError::Write { .. }) => return Err(error),
            Err(error) => {
                recovered.failed.push(FailedProcess { directory: directory.clone(), reason: error.to_string() });
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if recovered.processes.is_empty() => Err(error),
        _ => Ok(recovered),
    }
}
