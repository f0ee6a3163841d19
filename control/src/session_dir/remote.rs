//! The directories of other processes in a session, as seen by a remote consumer of their rings.
//!
//! The consumer holds a lock on the file `consumer` in the directory. A second consumer skips a locked directory; after a consumer was
//! killed, the next one continues where it stopped.

use super::lock::Lock;
use super::{CONSUMER, METADATA, OUTPUTS, RINGS, dead};
use crate::private_dir::PrivateDir;
use crate::process::ProcessKey;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Maximum length of metadata that is read, in bytes.
const MAX_METADATA: u64 = 64 << 20;

/// The directories of all processes of a session.
#[derive(Debug)]
pub(crate) struct RemoteRingDirs(PrivateDir);

impl RemoteRingDirs {
    /// Opens those in the directory of a session; `None` if no process has made one yet.
    pub(crate) fn open(session: &PrivateDir) -> Option<Self> {
        session.open_subdir(RINGS).ok().map(Self)
    }

    /// The names of the directories of processes.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.names()?;
        names.retain(|name| ProcessKey::of_directory(name).is_some());
        Ok(names)
    }

    /// Locks the directory called `name` for this consumer; `None` if another consumer holds it, or its metadata is not written yet.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or trusted.
    pub(crate) fn take(&self, name: &str) -> io::Result<Option<RemoteDir>> {
        let dir = match self.0.open_subdir(name) {
            Err(error) if error.is_missing() => return Ok(None),
            opened => opened.map_err(io::Error::other)?,
        };
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

    /// Removes a directory whose packets are all consumed.
    pub(crate) fn remove(&self, dir: &RemoteDir) {
        let _lock = Lock::take(&self.0);
        dead::remove(&self.0, &dir.name, &dir.dir);
    }
}

/// The directory of one process, locked for this consumer.
#[derive(Debug)]
pub(crate) struct RemoteDir {
    name: String,
    dir: PrivateDir,
    /// Closing it releases the lock.
    _lease: File,
}

impl RemoteDir {
    /// The name of the directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process still records into it.
    pub(crate) fn is_recorded_into(&self) -> bool {
        dead::is_alive(&self.dir)
    }

    /// Changes whenever the metadata is replaced.
    pub(crate) fn metadata_stamp(&self) -> io::Result<(u64, u64)> {
        self.dir.stamp(METADATA)
    }

    pub(crate) fn metadata(&self) -> io::Result<Vec<u8>> {
        self.dir.read_file(METADATA, MAX_METADATA)
    }

    pub(crate) fn rings(&self) -> Vec<String> {
        dead::ring_names(&self.dir)
    }

    /// Opens a ring file for reading and writing: the consumer writes back which packets it has consumed.
    pub(crate) fn ring(&self, name: &str) -> io::Result<(PathBuf, File)> {
        Ok((self.dir.path().join(name), self.dir.open_to_change(name)?))
    }

    /// Writes the list of outputs that packets are moved to, which recovery reads.
    pub(crate) fn put_outputs(&self, outputs: &[u8]) -> io::Result<()> {
        self.dir.replace(OUTPUTS, outputs)
    }

    /// Detaches the consumer: the process removes the directory when its recording ends.
    pub(crate) fn give_up(&self) {
        self.dir.remove_file(METADATA);
    }
}
