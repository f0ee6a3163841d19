//! The directories of other processes in a session, as seen by a remote consumer of their rings.
//!
//! The consumer has a [lease](super::lease) on each. A second consumer skips leased directories; after a consumer was killed, the next one
//! continues where it stopped. A directory can be closed between two accesses, because the consumer of a thousand processes may not have
//! enough descriptors.

use super::{CONSUMER, METADATA, OUTPUTS, RINGS, dead, flushed, lease};
use crate::lock::{Lock, is_locked};
use crate::private_dir::PrivateDir;
use fileguard::CheckedFd;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracepoint_reader::process::ProcessKey;

/// Maximum length of metadata that is read, in bytes.
const MAX_METADATA: u64 = 64 << 20;

/// The directories of all processes of a session.
#[derive(Debug)]
pub struct RemoteRingDirs(Arc<PrivateDir>);

impl RemoteRingDirs {
    /// Opens the directories in the directory of a session; `None` if no process has created one yet.
    pub fn open(session: &PrivateDir) -> Option<Self> {
        session.open_subdir(RINGS).ok().map(|rings| Self(Arc::new(rings)))
    }

    /// The names of the directories of processes.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = self.0.names()?;
        names.retain(|name| ProcessKey::of_directory(name).is_some());
        Ok(names)
    }

    /// Leases the directories with these names to this consumer; each stays closed until its first access. Returns `None` for a directory
    /// that another consumer has leased, or whose metadata is not written yet, and the error for one that cannot be opened or trusted.
    ///
    /// # Errors
    ///
    /// If other processes hold the lock for longer than `timeout`, such as those that remove directories of dead processes.
    pub fn take(&self, names: &[String], timeout: Duration) -> io::Result<Vec<io::Result<Option<RemoteDir>>>> {
        let _lock = Lock::take_within(&self.0, timeout)?;
        Ok(names.iter().map(|name| self.take_one(name)).collect())
    }

    fn take_one(&self, name: &str) -> io::Result<Option<RemoteDir>> {
        let dir = match self.0.open_subdir(name) {
            Err(error) if error.is_missing() => return Ok(None),
            opened => opened.map_err(io::Error::other)?,
        };
        let inode = dir.stat()?.st_ino;
        if dir.file_len(METADATA).is_err() || dir.file_len(CONSUMER).is_err() || !lease::take(&self.0, inode)? {
            return Ok(None);
        }
        let rings = Arc::clone(&self.0);
        Ok(Some(RemoteDir { rings, name: name.to_owned(), inode, open: Mutex::default(), key: OnceLock::new() }))
    }

    /// Removes a directory whose packets are all consumed.
    pub fn remove(&self, dir: &RemoteDir) {
        let _lock = Lock::take(&self.0);
        let _ = dir.with(|open| {
            dead::remove(&self.0, &dir.name, open);
            Ok(())
        });
    }
}

/// The directory of one process, leased to this consumer.
#[derive(Debug)]
pub struct RemoteDir {
    rings: Arc<PrivateDir>,
    name: String,
    inode: u64,
    /// `None` until the next access.
    open: Mutex<Option<PrivateDir>>,
    /// The process, once it is known to be in this pid namespace.
    key: OnceLock<ProcessKey>,
}

impl RemoteDir {
    /// The name of the directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes it until the next access.
    pub fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn with<R>(&self, act: impl FnOnce(&PrivateDir) -> io::Result<R>) -> io::Result<R> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dir) = &*open {
            return act(dir);
        }
        let is_same = self.rings.stamp(&self.name)?.0 == self.inode;
        let dir = if is_same { self.rings.open_subdir(&self.name).map_err(io::Error::other)? } else { return gone() };
        if dir.stat()?.st_ino != self.inode {
            return gone();
        }
        act(open.insert(dir))
    }

    /// Returns whether the process still records into it.
    pub fn is_recorded_into(&self) -> bool {
        let is_alive = self.with(|dir| {
            let known = self.key.get().copied();
            let key = known.or_else(|| dead::key_here(dir).map(|key| *self.key.get_or_init(|| key)));
            Ok(is_locked(dir).unwrap_or(true) && key.is_none_or(ProcessKey::exists))
        });
        match is_alive {
            Ok(is_alive) => is_alive,
            // It cannot be opened at this moment.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns a stamp that changes whenever the metadata is replaced.
    pub fn metadata_stamp(&self) -> io::Result<(u64, u64)> {
        self.with(|dir| dir.stamp(METADATA))
    }

    /// Returns the time before which the process has closed all packets; `None` if it does not publish this.
    pub fn flushed(&self) -> Option<u64> {
        self.with(|dir| Ok(flushed::read(dir))).ok().flatten()
    }

    /// Reads the metadata of the trace.
    pub fn metadata(&self) -> io::Result<Vec<u8>> {
        self.with(|dir| dir.read_file(METADATA, MAX_METADATA))
    }

    /// The names of the ring files.
    pub fn rings(&self) -> Vec<String> {
        self.with(|dir| Ok(dead::ring_names(dir))).unwrap_or_default()
    }

    /// Opens a ring file for reading and writing: the consumer records in it which packets it has consumed.
    pub fn ring(&self, name: &str) -> io::Result<(PathBuf, CheckedFd<File>)> {
        self.with(|dir| Ok((dir.path().join(name), dir.open_to_change(name)?)))
    }

    /// Writes the list of outputs that packets are moved to, for recovery.
    pub fn put_outputs(&self, outputs: &[u8]) -> io::Result<()> {
        self.put_file(OUTPUTS, outputs)
    }

    /// Replaces a file about the consumer's progress.
    pub fn put_file(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        self.with(|dir| dir.replace(name, contents))
    }

    /// Detaches the consumer: the process removes the directory when its recording ends.
    pub fn give_up(&self) {
        let _ = self.with(|dir| {
            dir.remove_file(METADATA);
            Ok(())
        });
    }
}

impl Drop for RemoteDir {
    fn drop(&mut self) {
        lease::release(&self.rings, self.inode);
    }
}

fn gone<R>() -> io::Result<R> {
    Err(io::Error::new(io::ErrorKind::NotFound, "the directory was removed"))
}
