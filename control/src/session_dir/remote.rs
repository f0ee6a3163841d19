//! The directories of other processes in a session, for whoever takes the packets of their rings.
//!
//! Who takes them has the file `consumer` in the directory locked, for as long as he lives: a second one leaves the directory alone, and
//! after one that was killed the next goes on where he left off.

use super::lock::Lock;
use super::{CONSUMER, METADATA, OUTPUTS, RINGS, dead};
use crate::private_dir::PrivateDir;
use crate::process::ProcessKey;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Longest metadata that is read, in bytes.
const MAX_METADATA: u64 = 64 << 20;

/// All of a session.
#[derive(Debug)]
pub(crate) struct RemoteRingDirs(PrivateDir);

impl RemoteRingDirs {
    /// Those of the session whose directory this is; `None` if there are none yet.
    pub(crate) fn open(session: &PrivateDir) -> Option<Self> {
        session.open_subdir(RINGS).ok().map(Self)
    }

    /// The names of the directories of processes.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.names()?;
        names.retain(|name| ProcessKey::of_directory(name).is_some());
        Ok(names)
    }

    /// The directory of this name, from here on this process's to take the packets of; `None` if it is another's, or not described yet.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or trusted.
    pub(crate) fn take(&self, name: &str) -> io::Result<Option<RemoteDir>> {
        let Ok(dir) = self.0.open_subdir(name) else { return Ok(None) };
        if dir.file_len(METADATA).is_err() {
            return Ok(None);
        }
        let lease = match dir.open_file(CONSUMER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match flock(&lease, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(RemoteDir { name: name.to_owned(), dir, _lease: lease })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes a directory of which all is taken.
    pub(crate) fn remove(&self, dir: &RemoteDir) {
        let _lock = Lock::take(&self.0);
        dead::remove(&self.0, &dir.name, &dir.dir);
    }
}

/// The directory of one process, which is this process's to take the packets of.
#[derive(Debug)]
pub(crate) struct RemoteDir {
    name: String,
    dir: PrivateDir,
    /// Closed, it is another's.
    _lease: File,
}

impl RemoteDir {
    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process records into it still.
    pub(crate) fn is_recorded_into(&self) -> bool {
        dead::is_alive(&self.dir)
    }

    /// What tells the metadata from those of another time.
    pub(crate) fn metadata_stamp(&self) -> io::Result<(u64, u64)> {
        self.dir.stamp(METADATA)
    }

    /// The text of the metadata.
    pub(crate) fn metadata(&self) -> io::Result<Vec<u8>> {
        self.dir.read_file(METADATA, MAX_METADATA)
    }

    /// The names of the ring files.
    pub(crate) fn rings(&self) -> Vec<String> {
        dead::ring_names(&self.dir)
    }

    /// Opens a ring file for reading, and for writing where its packets are given back.
    pub(crate) fn ring(&self, name: &str) -> io::Result<(PathBuf, File)> {
        Ok((self.dir.path().join(name), self.dir.open_to_change(name)?))
    }

    /// Notes where packets go: whoever recovers looks for them there.
    pub(crate) fn put_outputs(&self, outputs: &[u8]) -> io::Result<()> {
        self.dir.replace(OUTPUTS, outputs)
    }

    /// Has the process remove it when it ends the recording: nobody takes any more.
    pub(crate) fn give_up(&self) {
        self.dir.remove_file(METADATA);
    }
}
