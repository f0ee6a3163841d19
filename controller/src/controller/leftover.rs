//! Rings of sessions that are over: a recorder was killed, a session was destroyed without its rings, a program that had started a session
//! was killed, or the removal was interrupted.
//!
//! They are kept for recovery, up to a limit on all of them together that every listing of the sessions enforces: the rings of the newest
//! session stay, and those of older ones while the sum stays below [`MAX_BYTES`] and a quarter of the file system. Rings that a process
//! records into, or that a recorder drains, are neither counted nor removed.

use super::{ControlError, Controller, read_spec};
use rustix::fs::fstatvfs;
use std::cmp::Reverse;
use std::path::{Path, PathBuf, absolute};
use std::time::{Duration, SystemTime};
use tracepoint_run_dir::layout::{RINGS, SESSIONS, STATISTICS};
use tracepoint_run_dir::lock::Lock;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_run_dir::session_dir::{self, KeepDead, UnusedRings, rings_of_output};
use tracepoint_session_spec::check_name;

/// Maximum size of all kept rings except those of the newest session, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum fraction of the file system that they may take: one in this many.
const MAX_PART: u64 = 4;

/// The rings of a session that is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leftover {
    /// The name that the session had.
    pub name: String,
    /// The session's directory, which `tracectl recover` takes.
    pub path: PathBuf,
    /// The number of processes that the rings belong to.
    pub processes: usize,
    /// The size of the rings in the file system, in bytes.
    pub bytes: u64,
    /// The last time that a process was seen recording into the rings, or left them to a recorder that has ended.
    pub changed: SystemTime,
}

impl Leftover {
    /// The time since the last of the rings was left.
    pub fn age(&self) -> Duration {
        self.changed.elapsed().unwrap_or_default()
    }
}

impl Controller {
    /// The rings of sessions that are over, newest first. Those beyond the limits are removed.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, ControlError> {
        let names = self.store.sessions().names().map_err(|error| self.store.sessions().failed("read", "", error))?;
        let mut found: Vec<_> = names.iter().filter_map(|name| self.leftover(name)).collect();
        found.sort_by_key(|leftover| Reverse(leftover.changed));
        let size = self.store.sessions().fd().and_then(|fd| Ok(fstatvfs(fd)?)).map(|all| all.f_blocks * all.f_frsize);
        let most = size.map_or(MAX_BYTES, |size| size / MAX_PART).min(MAX_BYTES);
        let mut sum = 0_u64;
        let sums = found.iter().map(|leftover| {
            sum = sum.saturating_add(leftover.bytes);
            sum
        });
        let kept = sums.enumerate().take_while(|(index, sum)| *index == 0 || *sum <= most).count();
        let beyond = found.split_off(kept);
        // A controller that holds the lock may be creating a session of one of these names. The next listing tries again.
        let lock = beyond.first().and_then(|_| Lock::take_within(self.store.sessions(), Duration::ZERO).ok());
        found.extend(beyond.into_iter().filter(|leftover| lock.is_none() || !self.remove_unused(&leftover.name)));
        Ok(found)
    }

    /// Returns the rings of the session of this name, if it is over.
    pub fn leftover(&self, name: &str) -> Option<Leftover> {
        check_name(name).ok()?;
        let dir = self.store.sessions().open_subdir(name).ok()?;
        if !is_over(&dir) {
            return None;
        }
        let mut unused = session_dir::unused(&dir)?;
        if unused.partly_removed {
            session_dir::remove_dead(&dir, KeepDead::ALL);
            self.store.sessions().remove_empty(name);
            unused = session_dir::unused(&dir)?;
        }
        let UnusedRings { processes, bytes, changed, .. } = unused;
        Some(Leftover { name: name.to_owned(), path: dir.path().to_owned(), processes, bytes, changed })
    }

    /// Removes the rings that [`Controller::leftover`] returns. Rings that are in use by now stay. Returns whether all are removed.
    ///
    /// # Errors
    ///
    /// If another controller holds the lock on the sessions for too long.
    pub fn remove_leftover(&self, name: &str) -> Result<bool, ControlError> {
        let _lock = self.store.lock()?;
        Ok(self.remove_unused(name))
    }

    /// The same for a caller that holds the lock on the sessions.
    fn remove_unused(&self, name: &str) -> bool {
        let Ok(dir) = self.store.sessions().open_subdir(name) else { return true };
        // A new session of that name keeps the rings of its dead processes by its own limits.
        if !is_over(&dir) {
            return false;
        }
        session_dir::remove_dead(&dir, KeepDead::NONE);
        if dir.file_len(RINGS).is_err() {
            dir.remove_subdir(STATISTICS);
        }
        self.store.sessions().remove_empty(name);
        session_dir::unused(&dir).is_none()
    }
}

/// Returns whether there is no session in this directory.
fn is_over(dir: &PrivateDir) -> bool {
    matches!(read_spec(dir), Err(ControlError::Dir(error)) if error.is_missing())
}

/// Returns the directory of the rings of a dead process that wrote to `output`: a CTF trace, a directory with chunks or traces, or a dt
/// file. `None` if there is none in the run directory, the process still records, or a recorder still takes its packets.
///
/// Creates no directory. Costs a few system calls for each process in the run directory.
pub fn rings_behind(output: &Path) -> Option<PathBuf> {
    let output = output.canonicalize().or_else(|_| absolute(output)).ok()?;
    let sessions = RunDir::open(&RunDir::place()).ok()?.dir().open_subdir(SESSIONS).ok()?;
    let names = sessions.names().ok()?;
    names.iter().find_map(|name| rings_of_output(&sessions.open_subdir(name).ok()?, &output))
}
