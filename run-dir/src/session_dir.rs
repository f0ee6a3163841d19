//! The directories of a session: one shared by its processes, with a subdirectory for each process.
//!
//! ```text
//!   sessions/NAME/            in the run directory; or a directory that the session's configuration names
//!       wake                  the word that a remote consumer sleeps on
//!       memory                the sum of the ring memory
//!       bandwidth             the token bucket of its streams, if they have a cap
//!       rings/                locked while a process removes the directories of dead ones
//!           PID-START/        holds alive, locked while the process records, metadata, outputs, *.ring
//! ```
//!
//! A process removes its directory when its session ends normally. The directory of a killed process stays for recovery; the newest few of
//! these are kept. No code here needs the cooperation of another process: the locks are `flock` locks, which the kernel releases when their
//! holder dies.

mod dead;
mod error;
mod flushed;
mod lease;
mod ledger;
mod leftover;
mod memory_sum;
mod options;
mod outputs;
mod remote;
mod wake;

pub use error::RingDirError;
pub use flushed::FlushedFile;
pub use ledger::{MEMORY, MEMORY_SIZE};
pub use leftover::{UnusedRings, unused};
pub use memory_sum::MemorySum;
pub use options::{KeepDead, Options, Place};
pub use outputs::{beside_rings, listed_outputs, rings_of_output};
pub use remote::{RemoteDir, RemoteRingDirs};
pub use wake::{WAKE, WAKE_SIZE, open as open_wake_file};

use crate::layout::{BANDWIDTH, RINGS, SESSIONS};
use crate::lock::{Lock, OwnLock, is_turn_to_clean, lock_own};
use crate::private_dir::{DirError, PrivateDir};
use crate::rundir::RunDir;
use fileguard::CheckedFd;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracepoint_reader::process::{self, ProcessKey};

/// Number of attempts to create a directory while other processes remove its parent.
pub const TRIES: u32 = 100;

const METADATA: &str = "metadata";
const OUTPUTS: &str = "outputs";
/// A file whose presence marks the rings as being for a remote consumer, such as the recorder.
const CONSUMER: &str = "consumer";

/// Magic numbers of the file systems that keep files in memory (`statfs(2)`).
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// The directory of this process in a session.
#[derive(Debug)]
pub struct ProcessDir {
    /// The parent of the session's directory, and the directory's name; `None` if the user chose the path, which is then not removed.
    sessions: Option<(PrivateDir, String)>,
    /// The run directory, if it contains the session's directory.
    run_dir: Option<PathBuf>,
    session: PrivateDir,
    rings: PrivateDir,
    name: String,
    dir: Arc<PrivateDir>,
    path: PathBuf,
    keep_dead: KeepDead,
    /// `None` once the directory was left to a consumer.
    lock: Mutex<Option<OwnLock>>,
}

impl ProcessDir {
    /// Creates the directory and its missing parents; removes directories of dead processes beyond the limits.
    pub fn make(options: &Options, session: &str) -> Result<Self, RingDirError> {
        let mut result = Self::try_make(options, session);
        for _ in 1..TRIES {
            // A process of the session that just ended may have removed the session's directory while it was still empty.
            if !matches!(&result, Err(error) if error.is_missing()) {
                break;
            }
            result = Self::try_make(options, session);
        }
        result
    }

    fn try_make(options: &Options, session: &str) -> Result<Self, RingDirError> {
        let (sessions, run_dir, session) = match &options.place {
            Place::RunDir => {
                let run_dir = RunDir::of_traced_process().map_err(RingDirError::RunDir)?;
                let sessions = run_dir.dir().subdir(SESSIONS)?;
                options.check_file_system(&sessions)?;
                let dir = sessions.subdir(session)?;
                (Some((sessions, session.to_owned())), Some(run_dir.path().to_owned()), dir)
            }
            Place::At(path) => {
                let dir = PrivateDir::at(path)?;
                options.check_file_system(&dir)?;
                (None, None, dir)
            }
        };
        let rings = session.subdir(RINGS)?;
        let (name, dir, lock) = make_own(&rings)?;
        clean_up(&rings, options.keep_dead);
        let path = std::path::absolute(dir.path()).map_err(|error| rings.failed("find", &name, error))?;
        // These are not needed again until the end.
        sessions.iter().map(|(sessions, _)| sessions).chain([&session, &rings]).for_each(PrivateDir::close);
        let (dir, lock) = (Arc::new(dir), Mutex::new(Some(lock)));
        Ok(Self { sessions, run_dir, session, rings, name, dir, path, keep_dead: options.keep_dead, lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name, which contains the id of this process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run directory; `None` if the user chose another place.
    pub fn run_dir(&self) -> Option<&Path> {
        self.run_dir.as_deref()
    }

    pub(crate) fn metadata_path(&self) -> PathBuf {
        self.path.join(METADATA)
    }

    /// The directory of the session.
    pub const fn session(&self) -> &PrivateDir {
        &self.session
    }

    /// The directory, open.
    pub fn dir(&self) -> &PrivateDir {
        &self.dir
    }

    /// Returns the directory, to be shared.
    pub fn shared_dir(&self) -> Arc<PrivateDir> {
        Arc::clone(&self.dir)
    }

    /// Writes the metadata, and the list of the outputs that packets are moved to. If `outputs` is `None`, the remote consumer of the rings
    /// writes the list.
    pub fn describe(&self, metadata: &str, outputs: Option<&[u8]>) -> Result<(), RingDirError> {
        let outputs = outputs.map(|bytes| (OUTPUTS, bytes));
        for (name, bytes) in outputs.into_iter().chain([(METADATA, metadata.as_bytes())]) {
            self.dir.put_whole(name, bytes).map_err(|error| self.dir.failed("write", name, error))?;
        }
        Ok(())
    }

    /// Marks the process as recording. If the process is killed, the age of the rings counts from the last call.
    pub fn touch(&self) {
        self.dir.touch();
        if let Some(lock) = &mut *self.lock.lock().unwrap_or_else(PoisonError::into_inner) {
            // A failure is retried at the next call.
            let _ = lock.renew(&self.dir);
        }
    }

    /// Creates the file in which the drain thread publishes to a remote consumer which packets are closed.
    pub fn make_flushed_file(&self) -> Result<FlushedFile, RingDirError> {
        FlushedFile::make(&self.dir).map_err(|error| self.dir.failed("make", "flushed", error).into())
    }

    /// Creates the file that marks the rings as being for a remote consumer, which then leases the directory.
    pub fn admit_consumer(&self) -> Result<(), RingDirError> {
        let made = self.dir.create_file(CONSUMER, 0);
        made.map_err(|error| self.dir.failed("make", CONSUMER, error))?;
        Ok(())
    }

    /// Opens the wake file, which contains the word that the remote consumer sleeps on, if the rings are for one.
    pub(crate) fn wake_file(&self) -> io::Result<Option<CheckedFd<File>>> {
        if self.dir.file_len(CONSUMER).is_err() {
            return Ok(None);
        }
        wake::open(&self.session).map(Some)
    }

    /// Leaves the directory to the remote consumer, as if this process had died. Removes the directory if the consumer has detached, which
    /// is shown by missing metadata. Also removes directories of dead processes beyond the limits.
    pub fn leave(&self) {
        if self.dir.file_len(METADATA).is_err() {
            return self.remove();
        }
        self.touch();
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
        clean_up(&self.rings, self.keep_dead);
    }

    /// Creates a ring file of `len` bytes.
    pub(crate) fn make_ring_file(&self, file: &str, len: u64) -> io::Result<CheckedFd<File>> {
        let made = self.dir.create_file(file, len)?;
        made.set_len(len).inspect_err(|_| self.dir.remove_file(file))?;
        Ok(made)
    }

    /// Opens the file with the sum of the ring memory of all processes of the session.
    pub(crate) fn open_memory(&self) -> Result<CheckedFd<File>, RingDirError> {
        ledger::open(&self.session).map_err(|error| self.session.failed("open", MEMORY, error).into())
    }

    /// Returns the size of the ring files of all living processes of the session, in bytes. Costs a few system calls for each process.
    pub fn memory_of_living(&self) -> io::Result<u64> {
        dead::memory_of_living(&self.rings)
    }

    /// Removes the directory with its files, and then its parents if they are empty. For a session that ended normally.
    pub fn remove(&self) {
        dead::remove(&self.rings, &self.name, &self.dir);
        self.session.remove_empty(RINGS);
        ledger::remove_unused(&self.session);
        if self.session.open_subdir(RINGS).is_err() {
            self.session.remove_file(BANDWIDTH);
        }
        if let Some((sessions, name)) = &self.sessions {
            sessions.remove_empty(name);
        }
    }
}

/// Removes the directories of dead processes beyond the limits `keep` from a session's directory, and its directories that are then empty;
/// returns the paths of those kept. A directory that cannot be removed stays, and all stay if other processes hold the lock for too long.
pub fn remove_dead(session: &PrivateDir, keep: KeepDead) -> Vec<PathBuf> {
    let Ok(rings) = session.open_subdir(RINGS) else { return Vec::new() };
    let kept = match Lock::take(&rings) {
        Ok(_lock) => dead::remove_old(&rings, keep),
        Err(_) => Vec::new(),
    };
    session.remove_empty(RINGS);
    ledger::remove_unused(session);
    kept
}

/// Returns the living processes that have started a session of this directory in code, each with its directory, and whether it is in this
/// process's pid namespace.
pub fn living_in_code(session: &PrivateDir) -> Vec<(ProcessKey, PrivateDir, bool)> {
    session.open_subdir(RINGS).map_or_else(|_| Vec::new(), |rings| dead::living_in_code(&rings))
}

/// Returns whether the process with the ring directory `name` in this session still records.
pub fn is_recording(session: &PrivateDir, name: &str) -> bool {
    session.open_subdir(RINGS).and_then(|rings| rings.open_subdir(name)).is_ok_and(|dir| dead::is_alive(&dir))
}

/// Removes one directory that `remove_dead` returned as `path`, if its process is dead.
pub fn remove_one_dead(session: &PrivateDir, path: &Path) {
    let Ok(rings) = session.open_subdir(RINGS) else { return };
    if let (Some(name), Ok(_lock)) = (path.file_name().and_then(OsStr::to_str), Lock::take(&rings)) {
        dead::remove_one(&rings, name);
    }
}

impl Options {
    fn check_file_system(&self, dir: &PrivateDir) -> Result<(), RingDirError> {
        let failed = |error| dir.failed("look at", "", error);
        let fd = dir.fd().map_err(failed)?;
        let found = rustix::fs::fstatfs(&fd).map_err(|errno| failed(errno.into()))?;
        // The type of `f_type` differs between architectures; magic numbers have 32 bits.
        let file_system = (found.f_type as i64).cast_unsigned() & 0xFFFF_FFFF;
        if self.allow_disk || file_system == TMPFS || file_system == RAMFS {
            return Ok(());
        }
        Err(RingDirError::Disk { path: dir.path().to_owned(), file_system })
    }
}

/// Removes directories of dead processes beyond the limits, if it is this process's turn and no other process is doing so.
fn clean_up(rings: &PrivateDir, keep: KeepDead) {
    let count = rings.names().map_or(0, |names| names.len());
    if let (true, Ok(_lock)) = (is_turn_to_clean(count), Lock::take_within(rings, Duration::ZERO)) {
        dead::remove_old(rings, keep);
    }
}

/// Creates a directory for this process, and locks it, which marks the process as alive. The name gets a number, from 2 on, if the process
/// already has a directory: it records more than one session of this name, or left one behind before `execve`.
fn make_own(rings: &PrivateDir) -> Result<(String, PrivateDir, OwnLock), DirError> {
    let first = format!("{}-{}", std::process::id(), process::started());
    let mut name = first.clone();
    for number in 2_u64.. {
        match rings.make_subdir(&name) {
            Err(DirError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(dir) => {
                let lock = lock_own(rings, &name, &dir).map_err(|error| rings.failed("lock", &name, error))?;
                if let Some(lock) = lock {
                    return Ok((name, dir, lock));
                }
            }
        }
        name = format!("{first}-{number}");
    }
    unreachable!("no directory has that many entries")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// A process that leaves last may remove a parent directory that another process is about to use.
    #[test]
    fn directories_are_created_and_removed_concurrently() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let options =
            Options { place: Place::At(temp.path().join("session")), allow_disk: true, keep_dead: KeepDead::NONE };
        let come_and_go = || {
            for _ in 0..500 {
                ProcessDir::make(&options, "s").expect("it can be made").remove();
            }
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(come_and_go);
            }
        });
        assert_eq!(std::fs::read_dir(temp.path().join("session"))?.count(), 0);
        Ok(())
    }
}
