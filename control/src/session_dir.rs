//! The directories of a session: one that its processes share, and in it one for each of them.
//!
//! ```text
//!   sessions/NAME/            in the run directory; or a directory that the session names
//!       rings/                locked for as long as somebody looks at it as a whole
//!           PID-START/        locked for as long as the process records: metadata, outputs, *.ring
//! ```
//!
//! A process's directory vanishes when the session ends well. What a process left that was killed stays, for whoever wants to
//! recover it; of the dead the newest few are kept. Nothing here asks a process for help: the locks are the kernel's, and end with
//! those who hold them.

mod dead;
mod error;
pub(crate) mod lock;
mod remote;

pub use error::RingDirError;
pub(crate) use remote::{RemoteDir, RemoteRingDirs};

use crate::private_dir::{DirError, PrivateDir};
use crate::process;
use crate::rundir::RunDir;
use lock::Lock;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// How often making a directory is tried while others remove the one that it is to be in.
pub(crate) const TRIES: u32 = 100;

const SESSIONS: &str = "sessions";
pub(crate) const RINGS: &str = "rings";
const METADATA: &str = "metadata";
const OUTPUTS: &str = "outputs";
/// Locked by whoever takes the packets of the rings from outside.
const CONSUMER: &str = "consumer";

/// File systems whose files are memory, by the kernel's numbers.
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;

/// Where a session's directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the run directory, under the session's name.
    RunDir,
    /// Here.
    At(PathBuf),
}

/// What a session says of its directory.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Where it is.
    pub(crate) place: Place,
    /// Whether it may be on a disk.
    pub(crate) allow_disk: bool,
    /// What is kept of processes that died.
    pub(crate) keep_dead: KeepDead,
}

/// What is kept of processes that died: of the newest, so many, and so many bytes of rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepDead {
    pub(crate) processes: usize,
    pub(crate) bytes: u64,
}

impl KeepDead {
    /// Everything, and nothing.
    pub(crate) const ALL: Self = Self { processes: usize::MAX, bytes: u64::MAX };
    pub(crate) const NONE: Self = Self { processes: 0, bytes: 0 };
}

/// The directory of this process in a session.
#[derive(Debug)]
pub(crate) struct ProcessDir {
    /// Where the session's directory is, and what it is called there; `None` if it was named by the user, and is not ours.
    sessions: Option<(PrivateDir, String)>,
    session: PrivateDir,
    rings: PrivateDir,
    name: String,
    dir: PrivateDir,
    path: PathBuf,
    keep_dead: KeepDead,
}

impl ProcessDir {
    /// Makes it, and the directories that it is in where they are not there yet; removes what too many dead processes left.
    pub(crate) fn make(options: &Options, session: &str) -> Result<Self, RingDirError> {
        let mut result = Self::try_make(options, session);
        for _ in 1..TRIES {
            // Another process of the session ended, and removed the session's directory while it was empty still.
            if !matches!(&result, Err(error) if error.is_missing()) {
                break;
            }
            result = Self::try_make(options, session);
        }
        result
    }

    fn try_make(options: &Options, session: &str) -> Result<Self, RingDirError> {
        let (sessions, session) = match &options.place {
            Place::RunDir => {
                let run_dir = RunDir::find().map_err(RingDirError::RunDir)?;
                let sessions = run_dir.subdir(SESSIONS)?;
                options.check_file_system(&sessions)?;
                let dir = sessions.subdir(session)?;
                (Some((sessions, session.to_owned())), dir)
            }
            Place::At(path) => {
                let dir = PrivateDir::at(path)?;
                options.check_file_system(&dir)?;
                (None, dir)
            }
        };
        let rings = session.subdir(RINGS)?;
        let lock = Lock::take(&rings).map_err(|error| session.failed("lock", RINGS, error))?;
        dead::remove_old(&rings, options.keep_dead);
        let (name, dir) = make_own(&rings)?;
        // The lock tells others that this process is alive. They hold the other one when they look.
        flock(&dir, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| rings.failed("lock", &name, errno.into()))?;
        drop(lock);
        let path = std::path::absolute(dir.path()).map_err(|error| rings.failed("find", &name, error))?;
        Ok(Self { sessions, session, rings, name, dir, path, keep_dead: options.keep_dead })
    }

    /// Its absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The absolute path of the metadata.
    pub(crate) fn metadata_path(&self) -> PathBuf {
        self.path.join(METADATA)
    }

    /// The directory, open.
    pub(crate) const fn dir(&self) -> &PrivateDir {
        &self.dir
    }

    /// Puts the files there that tell how to read the rings, and where packets went that are no longer in them.
    /// Without `outputs`, that is said by whoever takes the packets from outside.
    pub(crate) fn describe(&self, metadata: &str, outputs: Option<&[u8]>) -> Result<(), RingDirError> {
        let outputs = outputs.map(|bytes| (OUTPUTS, bytes));
        for (name, bytes) in outputs.into_iter().chain([(METADATA, metadata.as_bytes())]) {
            self.dir.put_whole(name, bytes).map_err(|error| self.dir.failed("write", name, error))?;
        }
        Ok(())
    }

    /// Says that packets are taken from outside: what is locked by whoever does that.
    pub(crate) fn admit_consumer(&self) -> Result<(), RingDirError> {
        let made = self.dir.create_file(CONSUMER, 0);
        made.map_err(|error| self.dir.failed("make", CONSUMER, error))?;
        Ok(())
    }

    /// Leaves all as it is to whoever takes the packets from outside: as if the process had died. Where nobody wants them any more, who
    /// has taken away the metadata then, it is removed; and of what other processes left, what is too much.
    pub(crate) fn leave(&self) {
        if self.dir.file_len(METADATA).is_err() {
            return self.remove();
        }
        // Not by closing it: a forked child may have it open, too. Fails only for a bad descriptor.
        let _ = flock(&self.dir, FlockOperation::Unlock);
        if let Ok(_lock) = Lock::take(&self.rings) {
            dead::remove_old(&self.rings, self.keep_dead);
        }
    }

    /// Makes `file`, unless the files of the rings of all living processes of the session, this one included, are then larger than
    /// `cap` bytes together. The file has its length at once, so that it counts for all who ask after it.
    pub(crate) fn make_counted(&self, file: &str, len: u64, cap: u64) -> io::Result<std::fs::File> {
        let _lock = Lock::take(&self.rings)?;
        let used = dead::memory_of_living(&self.rings)?;
        if used.saturating_add(len) > cap {
            let text = format!(
                "the session's rings take {used} bytes, and {len} more are beyond its cap of {cap}; raise it \
                 (`.memory_cap(bytes)`), or choose smaller or fewer rings"
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        let made = self.dir.create_file(file, len)?;
        made.set_len(len).inspect_err(|_| self.dir.remove_file(file))?;
        Ok(made)
    }

    /// Removes the directory with all that is in it, and those above that are empty then. For sessions that ended well.
    pub(crate) fn remove(&self) {
        dead::remove(&self.rings, &self.name, &self.dir);
        self.session.remove_empty(RINGS);
        if let Some((sessions, name)) = &self.sessions {
            sessions.remove_empty(name);
        }
    }
}

/// Removes what dead processes left in a session's directory, but for what is to be kept, and its directories that are empty then; the
/// directories of processes that stay. What cannot be removed, or is looked at by others for long, stays.
pub(crate) fn remove_dead(session: &PrivateDir, keep: KeepDead) -> Vec<PathBuf> {
    let Ok(rings) = session.open_subdir(RINGS) else { return Vec::new() };
    let kept = match Lock::take(&rings) {
        Ok(_lock) => dead::remove_old(&rings, keep),
        Err(_) => Vec::new(),
    };
    session.remove_empty(RINGS);
    kept
}

/// Removes what one dead process left, if it is dead; `path` is what `remove_dead` has called it.
pub(crate) fn remove_one_dead(session: &PrivateDir, path: &Path) {
    let Ok(rings) = session.open_subdir(RINGS) else { return };
    if let (Some(name), Ok(_lock)) = (path.file_name().and_then(OsStr::to_str), Lock::take(&rings)) {
        dead::remove_one(&rings, name);
    }
}

impl Options {
    fn check_file_system(&self, dir: &PrivateDir) -> Result<(), RingDirError> {
        let found = rustix::fs::fstatfs(dir).map_err(|errno| DirError::Io {
            action: "look at",
            path: dir.path().to_owned(),
            source: errno.into(),
        })?;
        // The type of the number differs between machines; the numbers have 32 bits.
        let file_system = (found.f_type as i64).cast_unsigned() & 0xFFFF_FFFF;
        if self.allow_disk || file_system == TMPFS || file_system == RAMFS {
            return Ok(());
        }
        Err(RingDirError::Disk { path: dir.path().to_owned(), file_system })
    }
}

/// Makes a directory for this process. A process that records more than once under one name has several, numbered from 2 on: so
/// has one that became another program and left one behind.
fn make_own(rings: &PrivateDir) -> Result<(String, PrivateDir), DirError> {
    let first = format!("{}-{}", std::process::id(), process::started());
    let mut name = first.clone();
    for number in 2_u64.. {
        match rings.make_subdir(&name) {
            Err(DirError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|dir| (name, dir)),
        }
        name = format!("{first}-{number}");
    }
    unreachable!("no directory has that many entries")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// The last one out removes what the next one is about to use.
    #[test]
    fn making_and_removing_at_once_goes_well() -> Result<(), Box<dyn std::error::Error>> {
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
