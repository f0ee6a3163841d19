//! The action `snapshot`: writes the contents of the session's rings to a directory that appears when it is complete.
//!
//! ```text
//!   make DIR/.TIME-PID.new, marked ─▶ take a snapshot into a directory in it ─▶ add the occurrence to the metadata ─▶ move its entries up
//!                                  ─▶ rename to DIR/TIME-PID
//! ```
//!
//! The [mark](OwnSnapshots) identifies the trigger that takes the snapshot.
//!
//! The traces are created by the same function as those of `tracectl snapshot`. The temporary directory reserves the name, so that
//! snapshots taken at the same time, by any processes, have different names.

use super::failure::ActionFailure;
use super::occurrence::Occurrence;
use super::own_snapshots::OwnSnapshots;
use super::state::KeptSnapshot;
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of snapshots with the same time and process.
const MAX_SAME: u32 = 1000;

/// The future name of a snapshot, reserved by its temporary directory.
#[derive(Debug)]
pub(super) struct SnapshotReservation {
    pub(super) temporary: PathBuf,
    path: PathBuf,
}

/// Creates the directory `output`, for this user only, and a temporary directory in it.
pub(super) fn reserve(
    own: OwnSnapshots<'_>,
    output: &Path,
    occurrence: &Occurrence,
    now: SystemTime,
) -> Result<SnapshotReservation, ActionFailure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(output);
    made.map_err(ActionFailure::of_path("make", output))?;
    let time = humantime::format_rfc3339_millis(now).to_string().replace(':', "");
    let first = if occurrence.pid == 0 { time } else { format!("{time}-{}", occurrence.pid) };
    for number in 1..=MAX_SAME {
        let name = if number == 1 { first.clone() } else { format!("{first}-{number}") };
        let reserved = SnapshotReservation { temporary: output.join(format!(".{name}.new")), path: output.join(name) };
        match DirBuilder::new().mode(0o700).create(&reserved.temporary) {
            Ok(()) if reserved.path.symlink_metadata().is_err() => {
                let marked = own.mark(&reserved.temporary).inspect_err(|_| reserved.abandon());
                marked.map_err(ActionFailure::of_path("mark", &reserved.temporary))?;
                return Ok(reserved);
            }
            Ok(()) => reserved.abandon(),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ActionFailure::of_path("make", &reserved.temporary)(error)),
        }
    }
    Err(ActionFailure::new(
        &format!("{} has {MAX_SAME} snapshots {first}; move them away", output.display()),
        Errno::EXIST.raw_os_error(),
    ))
}

impl SnapshotReservation {
    /// Writes the snapshot of the session in `session`. Removes its files on failure.
    ///
    /// Events before `since`, in ns of the trace's clock, are left out.
    pub(super) fn write(
        self,
        session: &Path,
        occurrence: &Occurrence,
        since: u64,
    ) -> Result<KeptSnapshot, ActionFailure> {
        let written = self.write_all(session, occurrence, since);
        if written.is_err() {
            self.abandon();
        }
        written
    }

    fn write_all(&self, session: &Path, occurrence: &Occurrence, since: u64) -> Result<KeptSnapshot, ActionFailure> {
        let snapshot = self.temporary.join(".snapshot");
        let made = DirBuilder::new().mode(0o700).create(&snapshot);
        made.map_err(ActionFailure::of_path("make", &snapshot))?;
        let recovered = tracepoint_reader::recover::snapshot_since(session, &snapshot, since)?;
        let environment = occurrence.environment();
        for process in &recovered.processes {
            let path = process.output.join("metadata");
            let append = || File::options().append(true).open(&path)?.write_all(environment.as_bytes());
            append().map_err(ActionFailure::of_path("write", &path))?;
        }
        move_up(&snapshot, &self.temporary).map_err(ActionFailure::of_path("move", &snapshot))?;
        let bytes = size(&self.temporary).map_err(ActionFailure::of_path("read", &self.temporary))?;
        fs::rename(&self.temporary, &self.path).map_err(ActionFailure::of_path("write", &self.path))?;
        Ok(KeptSnapshot { path: self.path.clone(), bytes })
    }

    fn abandon(&self) {
        // Files that cannot be removed are listed in the state of the trigger, and removed later.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

/// Moves the entries of a directory to its parent, and removes it.
fn move_up(directory: &Path, parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        fs::rename(entry.path(), parent.join(entry.file_name()))?;
    }
    fs::remove_dir(directory)
}

/// Returns the size of a directory on the disk, in bytes.
fn size(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += metadata.blocks() * 512 + if metadata.is_dir() { size(&entry.path())? } else { 0 };
    }
    Ok(bytes)
}
