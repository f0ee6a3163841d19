//! A store: a directory of Parquet files, in the layout of `docs/parquet.md`.
//!
//! ```text
//! DIR/day=2026-11-23/host=H/session=S/event=shop%3Aanswered/part-….parquet
//! DIR/account/day=…/host=…/session=…/part-….parquet
//! DIR/losses/day=…/host=…/session=…/part-….parquet
//! DIR/.tracepoint/store.json        says that this is a store
//!                 lock              held while names in the store change
//!                 maintenance       held while files are compacted or removed
//!                 layouts/NAME      the columns of the events with this name, by which `shop:answered#2` is found
//!                 traces/UUID       the traces that are in the store
//!                 transactions/ID/  files that are being written
//! ```

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::names::{base, escape};
use crate::transaction::{Transaction, lock_exclusively, recover, sync};

/// The directory of what is no data.
const OWN: &str = ".tracepoint";
/// The file that says that a directory is a store.
const STORE: &str = "store.json";
/// The value of [`Identity::format`].
const FORMAT: &str = "tracepoint-parquet";
/// The version that is written and read.
const VERSION: u32 = 1;

/// The contents of `store.json`.
#[derive(Serialize, Deserialize)]
struct Identity {
    format: String,
    version: u32,
}

/// A store in a local directory.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
}

/// A lock of a store.
pub(crate) struct Locked {
    _file: File,
}

impl Store {
    /// Opens a store, or makes one of a directory that is empty or does not exist. What a killed writer has left is completed, if it had been
    /// committed, and deleted otherwise.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if something else is in the directory; [`StoreError::Io`].
    pub fn create(root: &Path) -> Result<Self, StoreError> {
        if !is_store(root)? {
            create_synced(root)?;
            refuse_others(root)?;
            let own = root.join(OWN);
            create_synced(&own)?;
            let _locked = lock_file(&own.join("lock"))?;
            // Another process may have made it meanwhile.
            refuse_others(root)?;
            if !is_store(root)? {
                for directory in ["layouts", "traces", "transactions"] {
                    create_synced(&own.join(directory))?;
                }
                let identity = Identity { format: FORMAT.to_owned(), version: VERSION };
                let json = serde_json::to_vec(&identity).map_err(|error| StoreError::io(&own)(error.into()))?;
                publish(&own, STORE, &json)?;
            }
        }
        Self::open(root)
    }

    /// Opens a store that exists.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`] if it is none, or one of another version; [`StoreError::Io`].
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let path = root.join(OWN).join(STORE);
        let json = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(not_a_store(root, "it has no `.tracepoint/store.json`"));
            }
            read => read.map_err(StoreError::io(&path))?,
        };
        match serde_json::from_slice::<Identity>(&json) {
            Ok(Identity { format, version: VERSION }) if format == FORMAT => {}
            Ok(Identity { version, .. }) => {
                return Err(not_a_store(root, &format!("its version {version} is not supported")));
            }
            Err(error) => return Err(not_a_store(root, &format!("`store.json`: {error}"))),
        }
        let store = Self { root: root.to_owned() };
        store.recover(&store.lock()?)?;
        Ok(store)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn own(&self, name: &str) -> PathBuf {
        self.root.join(OWN).join(name)
    }

    fn transactions(&self) -> PathBuf {
        self.own("transactions")
    }

    /// Waits for the lock on the names in the store, which is held for a short time.
    pub(crate) fn lock(&self) -> Result<Locked, StoreError> {
        lock_file(&self.own("lock"))
    }

    /// Waits for the lock of what replaces or removes files.
    pub(crate) fn maintain(&self) -> Result<Locked, StoreError> {
        lock_file(&self.own("maintenance"))
    }

    /// Begins a change.
    pub(crate) fn begin(&self, _locked: &Locked) -> Result<Transaction, StoreError> {
        Transaction::begin(&self.root, &self.transactions())
    }

    /// Completes or deletes the changes of processes that died.
    pub(crate) fn recover(&self, _locked: &Locked) -> Result<(), StoreError> {
        recover(&self.root, &self.transactions())
    }

    /// Makes a change, after those of processes that died: it may change what they do.
    pub(crate) fn commit(&self, locked: &Locked, change: Transaction) -> Result<(), StoreError> {
        self.recover(locked)?;
        change.commit()
    }

    /// The same, but changes nothing and returns `false` if a file that would be removed is gone: another change has replaced or removed it.
    pub(crate) fn commit_replacement(&self, locked: &Locked, change: Transaction) -> Result<bool, StoreError> {
        self.recover(locked)?;
        if !change.removes_what_exists()? {
            change.abandon();
            return Ok(false);
        }
        change.commit().map(|()| true)
    }

    /// The name of events that are called `name` and have these columns: the first is called as the event, and others `name#2`, `name#3` ….
    pub(crate) fn event_name(&self, name: &str, columns: &str) -> Result<String, StoreError> {
        let base = base(name);
        let _locked = self.lock()?;
        for number in 1u32.. {
            let name = if number == 1 { base.to_owned() } else { format!("{base}#{number}") };
            let file = escape(&name);
            let path = self.own("layouts").join(&file);
            match fs::read_to_string(&path) {
                Ok(known) if known == columns => return Ok(name),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    publish(&self.own("layouts"), &file, columns.as_bytes())?;
                    return Ok(name);
                }
                Err(error) => return Err(StoreError::io(&path)(error)),
            }
        }
        unreachable!("more layouts than numbers")
    }

    /// The path of the file that says that a trace is in the store.
    pub(crate) fn trace_file(trace: &str) -> PathBuf {
        Path::new(OWN).join("traces").join(escape(trace))
    }

    /// Refuses a trace that is in the store.
    pub(crate) fn refuse_known(&self, trace: &str) -> Result<(), StoreError> {
        let path = self.root.join(Self::trace_file(trace));
        if path.try_exists().map_err(StoreError::io(&path))? {
            return Err(StoreError::AlreadyStored { path: self.root.clone(), trace: trace.to_owned() });
        }
        Ok(())
    }

    /// The traces in the store whose last day is before this one, by their files.
    pub(crate) fn traces_before(&self, day: &str) -> Result<Vec<PathBuf>, StoreError> {
        let directory = self.own("traces");
        let mut found = Vec::new();
        for entry in fs::read_dir(&directory).map_err(StoreError::io(&directory))? {
            let entry = entry.map_err(StoreError::io(&directory))?;
            let last = fs::read_to_string(entry.path()).map_err(StoreError::io(&entry.path()))?;
            if !last.is_empty() && *last < *day {
                found.push(Path::new(OWN).join("traces").join(entry.file_name()));
            }
        }
        Ok(found)
    }
}

fn not_a_store(path: &Path, reason: &str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), reason: reason.to_owned() }
}

fn is_store(root: &Path) -> Result<bool, StoreError> {
    let path = root.join(OWN).join(STORE);
    path.try_exists().map_err(StoreError::io(&path))
}

/// Refuses a directory that has files, and is no store.
fn refuse_others(root: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(root).map_err(StoreError::io(root))? {
        let name = entry.map_err(StoreError::io(root))?.file_name();
        // Another process may have made a store of it, and written files, since the last look.
        if name != OWN && !is_store(root)? {
            return Err(not_a_store(root, "it has other files"));
        }
    }
    Ok(())
}

/// Creates a directory, and those above it, so that they are there after a power failure.
fn create_synced(directory: &Path) -> Result<(), StoreError> {
    let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    let new: Vec<_> = directory.ancestors().take_while(missing).collect();
    fs::create_dir_all(directory).map_err(StoreError::io(directory))?;
    for path in new.iter().rev() {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync(parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Waits for the lock on a file, which is created.
fn lock_file(path: &Path) -> Result<Locked, StoreError> {
    let file = File::options().create(true).append(true).open(path).map_err(StoreError::io(path))?;
    lock_exclusively(&file).map_err(StoreError::io(path))?;
    Ok(Locked { _file: file })
}

/// Writes a file that is complete when it has its name.
fn publish(directory: &Path, name: &str, contents: &[u8]) -> Result<(), StoreError> {
    let (partial, path) = (directory.join(format!("{name}~partial")), directory.join(name));
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    written.map_err(StoreError::io(&partial))?;
    fs::rename(&partial, &path).map_err(StoreError::io(&path))?;
    sync(directory)
}
