//! Completes the session of a process that died: makes a CTF trace, with its account, from its rings and the outputs of its sinks.
//!
//! ```text
//!   metadata ───────────────────────────────▶ metadata
//!   outputs ──▶ packets kept by a sink ───────┐
//!                                             ├─▶ each once, by stream and number ─▶ CHANNEL_INSTANCE
//!   *.ring ───▶ packets still in the ring ────┘   (open ones completed)
//!        └────▶ counters ───────────────────────▶ reconciled with the packets ────▶ .account/account.json
//! ```
//!
//! The account is written last, so that an interrupted recovery is never mistaken for a complete one. The traces of a running process can be made in
//! the same way; its account is not complete.

mod acknowledged;
mod chunks;
mod error;
mod find;
#[cfg_attr(not(target_os = "linux"), path = "recover/liveness/elsewhere.rs")]
mod liveness;
mod lost_ring;
mod meter;
mod outputs;
mod packets;
mod process;
mod process_source;
mod removed;
mod since;
mod staged;
mod stream_file;
mod summary;
mod survey;
mod target;

use meter::Meter;
use process_source::ProcessSource;
use staged::StagedDirectory;
use std::path::Path;

pub(crate) use target::Target;

#[cfg(feature = "traces")]
pub(crate) use liveness::is_recording;

pub use error::RecoverError;
pub use process_source::MemoryRings;
pub use summary::{FailedProcess, Progress, RecoveredProcess, RecoverySummary};

/// Maximum number of times that a snapshot is read. It is read again while something in it is damaged.
const MAX_READINGS: u32 = 3;

/// Writes a trace to `out` from the rings of a process in `dir`. If there are several processes below `dir`, each gets its own directory in
/// `out`.
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
/// [`RecoverError::NoRings`] if there is nothing to recover, [`RecoverError::NotBegun`] if no process had begun, [`RecoverError::NotEmpty`] if
/// `out` is not empty, [`RecoverError::Write`] if it cannot be written, [`RecoverError::Read`] if nothing can be read. Damage in a part is not an
/// error.
pub fn recover(dir: &Path, out: &Path) -> Result<RecoverySummary, RecoverError> {
    recover_with(dir, out, |_| {})
}

/// Like [`recover`], and calls `report` repeatedly with the progress.
///
/// # Errors
/// As [`recover`].
pub fn recover_with(dir: &Path, out: &Path, report: impl FnMut(Progress)) -> Result<RecoverySummary, RecoverError> {
    recover_since(dir, out, 0, report)
}

fn recover_since(
    dir: &Path,
    out: &Path,
    since: u64,
    mut report: impl FnMut(Progress),
) -> Result<RecoverySummary, RecoverError> {
    let processes = find::processes(dir)?;
    let targets = find::targets(&processes, out);
    // First: a directory that is not empty must not be changed.
    Target::create(out)?;
    let mut recovered = RecoverySummary::default();
    let mut first_error = None;
    for (index, (directory, target)) in processes.iter().zip(&targets).enumerate() {
        let meter = Meter::new(&mut report, index, processes.len());
        let source = ProcessSource::Directory(directory);
        if source.has_not_begun() {
            recovered.not_begun.push(directory.clone());
            continue;
        }
        match process::recover(source, target, since, meter) {
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
        None if recovered.processes.is_empty() => Err(RecoverError::NotBegun(dir.to_owned())),
        _ => Ok(recovered),
    }
}

/// Takes a snapshot: writes the same traces to `out` while the processes record. The contents appear in `out` only when they are complete: an error,
/// or the end of the calling process, leaves no partial trace.
///
/// # Errors
/// As [`recover`]; [`RecoverError::NotEmpty`] also if another snapshot was written to `out` in the meantime.
pub fn snapshot(dir: &Path, out: &Path) -> Result<RecoverySummary, RecoverError> {
    snapshot_with(dir, out, |_| {})
}

/// Like [`snapshot`], and calls `report` repeatedly with the progress.
///
/// # Errors
/// As [`snapshot`].
pub fn snapshot_with(
    dir: &Path,
    out: &Path,
    mut report: impl FnMut(Progress),
) -> Result<RecoverySummary, RecoverError> {
    staged(out, |temporary| recover_with(dir, temporary, &mut report))
}

/// Takes a snapshot without the events before `since`, in cycles of the traces' clock: ns of `CLOCK_MONOTONIC`. These count as
/// overwritten, or as not taken by a sink.
///
/// # Errors
/// As [`snapshot`].
pub fn snapshot_since(dir: &Path, out: &Path, since: u64) -> Result<RecoverySummary, RecoverError> {
    staged(out, |temporary| recover_since(dir, temporary, since, |_| {}))
}

/// Takes a snapshot of rings in the memory of this process; `rings` returns the current ones.
///
/// # Errors
/// As [`snapshot`].
#[doc(hidden)]
pub fn snapshot_memory(rings: impl Fn() -> MemoryRings, out: &Path) -> Result<RecoverySummary, RecoverError> {
    staged(out, |temporary| {
        let mut ignore = |_| {};
        let rings = rings();
        let process = process::recover(ProcessSource::Memory(&rings), temporary, 0, Meter::new(&mut ignore, 0, 1))?;
        Ok(RecoverySummary { processes: vec![process], ..RecoverySummary::default() })
    })
}

/// Writes traces under a temporary name, and then publishes them as `out`.
///
/// A session that enables further events extends its metadata first. If that happens after the metadata was read and before a ring is,
/// the new records cannot be decoded. They can when everything is read again.
fn staged(
    out: &Path,
    mut write: impl FnMut(&Path) -> Result<RecoverySummary, RecoverError>,
) -> Result<RecoverySummary, RecoverError> {
    let staged = StagedDirectory::begin(out)?;
    let mut recovered = write(staged.path())?;
    for _ in 1..MAX_READINGS {
        if recovered.processes.iter().all(|process| process.complete || process.snapshot) {
            break;
        }
        staged.clear()?;
        recovered = write(staged.path())?;
    }
    for process in &mut recovered.processes {
        if let Ok(below) = process.output.strip_prefix(staged.path()) {
            process.output = out.components().chain(below.components()).collect();
        }
    }
    staged.publish()?;
    Ok(recovered)
}
