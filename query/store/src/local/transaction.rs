//! Atomic changes of a store.
//!
//! A transaction has a directory, `.tracepoint/transactions/ID`, and holds a lock on a file in it as long as its process lives. New files are written
//! there, with names that readers do not take for Parquet files. To commit, it writes `commit.json`, which lists the final names of new files, and
//! the files to remove. From then on the transaction is valid, and is applied: new files are renamed, and files to be removed are moved into the
//! directory, which is deleted at the end. Each step can be repeated. If the process has died, the next process that opens the store
//! [completes](recover) the transaction if it has a `commit.json`, and deletes it otherwise.
//!
//! Files are synchronized before `commit.json`, and `commit.json` before the first rename, so the same holds after a power failure.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{Local, StoreLock};
use crate::backend::{Backend, Change, Output};
use crate::error::StoreError;

/// The lock file of a transaction, locked while its process lives.
const LOCK: &str = "lock";
/// The file that makes a transaction valid, with its changes.
const COMMIT: &str = "commit.json";

/// The changes of a transaction.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Commit {
    /// Names in the directory of the transaction, with their paths in the store.
    add: Vec<(String, PathBuf)>,
    /// Paths in the store: files or directories.
    remove: Vec<PathBuf>,
}

/// A change of a store.
#[derive(Debug)]
pub(super) struct LocalTransaction {
    store: Local,
    root: PathBuf,
    directory: PathBuf,
    id: String,
    commit: Commit,
    _lock: File,
}

impl LocalTransaction {
    /// Starts a transaction. The caller holds the store's lock.
    pub(super) fn begin(store: &Local, transactions: &Path) -> Result<Self, StoreError> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let random = RandomState::new().hash_one(std::process::id());
        let id = format!("{time:012x}{random:016x}");
        let directory = transactions.join(&id);
        fs::create_dir(&directory).map_err(StoreError::io(&directory))?;
        sync(transactions)?;
        let lock = directory.join(LOCK);
        let lock = File::create(&lock)
            .and_then(|file| lock_exclusively(&file).map(|()| file))
            .map_err(StoreError::io(&lock))?;
        Ok(Self {
            store: store.clone(),
            root: store.root.clone(),
            directory,
            id,
            commit: Commit::default(),
            _lock: lock,
        })
    }

    /// The path at which to write a file that will become `path` in the store.
    fn stage(&mut self, path: PathBuf) -> PathBuf {
        let staged = self.commit.add.len().to_string();
        let file = self.directory.join(&staged);
        self.commit.add.push((staged, path));
        file
    }

    /// Marks a file or directory of the store for removal.
    pub(super) fn will_remove(&mut self, path: PathBuf) {
        self.commit.remove.push(path);
    }

    /// Returns whether all files marked for removal exist.
    fn removes_what_exists(&self) -> Result<bool, StoreError> {
        for path in &self.commit.remove {
            let path = self.root.join(path);
            if !path.try_exists().map_err(StoreError::io(&path))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Applies the change. The caller holds the store's lock. After an error nothing has changed, or the transaction is valid and [`recover`]
    /// completes it.
    pub(super) fn apply_all(self, _locked: &StoreLock) -> Result<(), StoreError> {
        if let Err(error) = self.make_valid() {
            self.delete();
            return Err(error);
        }
        apply(&self.root, &self.directory, &self.commit)
    }

    /// Writes `commit.json`, after all steps that can fail for lack of space.
    fn make_valid(&self) -> Result<(), StoreError> {
        for (_, path) in &self.commit.add {
            let path = self.root.join(path);
            let parent = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(parent).map_err(StoreError::io(parent))?;
        }
        let (partial, path) = (self.directory.join("commit.partial"), self.directory.join(COMMIT));
        let json = serde_json::to_vec(&self.commit).map_err(|error| StoreError::io(&partial)(error.into()))?;
        fs::write(&partial, json).map_err(StoreError::io(&partial))?;
        sync(&partial)?;
        sync(&self.directory)?;
        fs::rename(&partial, &path).map_err(StoreError::io(&path))?;
        sync(&self.directory)
    }

    /// Registers traces in the store.
    fn add_traces(&mut self, traces: &[(String, String)]) -> Result<(), StoreError> {
        for (trace, last_day) in traces {
            let path = self.stage(Local::trace_file(trace));
            fs::write(&path, last_day).map_err(StoreError::io(&path))?;
            sync(&path)?;
        }
        Ok(())
    }

    fn delete(&self) {
        drop(delete(&self.directory));
    }
}

impl Change for LocalTransaction {
    fn add(&mut self, partition: &Path, extension: &str) -> Result<Box<dyn Output>, StoreError> {
        let number = self.commit.add.len();
        let path = self.stage(partition.join(format!("part-{}-{number:04}.{extension}", self.id)));
        let file = File::create_new(&path).map_err(StoreError::io(&path))?;
        Ok(Box::new(LocalOutput { path, file }))
    }

    fn remove(&mut self, path: PathBuf) {
        self.will_remove(path);
    }

    fn commit(mut self: Box<Self>, traces: &[(String, String)]) -> Result<(), StoreError> {
        let store = self.store.clone();
        let prepared = self.add_traces(traces).and_then(|()| {
            let locked = store.lock()?;
            // First apply the transactions of dead processes, which may affect this one.
            store.recover(&locked)?;
            for (trace, _) in traces {
                if store.has_trace(trace)? {
                    return Err(StoreError::AlreadyStored(store.root.clone(), trace.clone()));
                }
            }
            Ok(locked)
        });
        match prepared {
            Ok(locked) => self.apply_all(&locked),
            Err(error) => {
                self.delete();
                Err(error)
            }
        }
    }

    fn replace(self: Box<Self>) -> Result<bool, StoreError> {
        let store = self.store.clone();
        let locked = store.lock()?;
        store.recover(&locked)?;
        if !self.removes_what_exists()? {
            self.delete();
            return Ok(false);
        }
        self.apply_all(&locked).map(|()| true)
    }

    fn abandon(self: Box<Self>) {
        self.delete();
    }
}

/// A file in the directory of a transaction.
struct LocalOutput {
    path: PathBuf,
    file: File,
}

impl Write for LocalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for LocalOutput {
    fn finish(self: Box<Self>) -> Result<u64, StoreError> {
        let size = self.file.sync_all().and_then(|()| self.file.metadata());
        size.map(|metadata| metadata.len()).map_err(StoreError::io(&self.path))
    }
}

/// Completes or deletes the transactions of dead processes. The caller holds the store's lock.
pub(super) fn recover(root: &Path, transactions: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(transactions).map_err(StoreError::io(transactions))? {
        let directory = entry.map_err(StoreError::io(transactions))?.path();
        let lock = match File::open(directory.join(LOCK)) {
            Ok(lock) => Some(lock),
            // Its process is deleting it, or died before it created the lock.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(StoreError::io(&directory)(error)),
        };
        if lock.as_ref().is_some_and(|lock| flock(lock, FlockOperation::NonBlockingLockExclusive).is_err()) {
            // Its process is alive.
            continue;
        }
        let path = directory.join(COMMIT);
        match fs::read(&path) {
            Ok(json) => {
                let commit = serde_json::from_slice(&json).map_err(|error| StoreError::io(&path)(error.into()))?;
                apply(root, &directory, &commit)?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => delete(&directory)?,
            Err(error) => return Err(StoreError::io(&path)(error)),
        }
    }
    Ok(())
}

/// Executes the remaining steps of a valid transaction.
fn apply(root: &Path, directory: &Path, commit: &Commit) -> Result<(), StoreError> {
    let mut changed = BTreeSet::new();
    for (staged, path) in &commit.add {
        let (staged, path) = (directory.join(staged), root.join(path));
        let parent = path.parent().unwrap_or(root);
        for ancestor in parent.ancestors().take_while(|ancestor| ancestor.starts_with(root)) {
            changed.insert(ancestor.to_owned());
        }
        fs::create_dir_all(parent).map_err(StoreError::io(parent))?;
        done_before(fs::rename(&staged, &path)).map_err(StoreError::io(&path))?;
    }
    for (number, path) in commit.remove.iter().enumerate() {
        let path = root.join(path);
        // Atomic for readers, even for a directory.
        done_before(fs::rename(&path, directory.join(format!("removed-{number}")))).map_err(StoreError::io(&path))?;
        changed.extend(path.parent().map(Path::to_owned));
    }
    changed.iter().try_for_each(|directory| sync(directory))?;
    delete(directory)
}

/// Deletes the directory of a transaction, `commit.json` first. Otherwise its steps could be repeated, even after a power failure, on newer files
/// with the same names. Another process may delete the directory at the same time.
fn delete(directory: &Path) -> Result<(), StoreError> {
    let removed = fs::remove_file(directory.join(COMMIT)).and_then(|()| File::open(directory)?.sync_all());
    done_before(removed).map_err(StoreError::io(directory))?;
    done_before(fs::remove_dir_all(directory)).map_err(StoreError::io(directory))
}

/// Ignores a missing file: a process that has died has done this step already.
fn done_before(step: io::Result<()>) -> io::Result<()> {
    match step {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Flushes a file or directory to disk.
pub(super) fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(StoreError::io(path))
}

/// Waits for the lock on a file.
pub(super) fn lock_exclusively(file: &File) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}
