//! A store in a local directory.
//!
//! ```text
//! .tracepoint/lock              held while names in the store change
//!             maintenance       held while files are compacted or removed
//!             layouts/NAME      the columns of the events with this name
//!             traces/UUID       a trace that is in the store: its last day
//!             transactions/ID/  files that are being written
//! ```

mod files;
mod transaction;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tracepoint_tables::names::escape;

use crate::backend::{Backend, Contents, Maintenance, OWN, Transaction};
use crate::error::StoreError;
use crate::files::{PartFile, Parts};
use crate::plan::{Plan, RetentionSummary};
use transaction::{LocalTransaction, lock_exclusively, recover, sync};

/// A store in a local directory.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    root: PathBuf,
}

/// A lock of a store, held until drop.
struct StoreLock {
    _file: File,
}

impl Local {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn own(&self, name: &str) -> PathBuf {
        self.root.join(OWN).join(name)
    }

    fn transactions(&self) -> PathBuf {
        self.own("transactions")
    }

    /// Waits for the lock on names in the store. Processes hold it for a short time only.
    fn lock(&self) -> Result<StoreLock, StoreError> {
        lock_file(&self.own("lock"))
    }

    fn begin(&self, _locked: &StoreLock) -> Result<LocalTransaction, StoreError> {
        LocalTransaction::begin(self, &self.transactions())
    }

    fn recover(&self, _locked: &StoreLock) -> Result<(), StoreError> {
        recover(&self.root, &self.transactions())
    }

    /// The path of the file that registers a trace in the store.
    fn trace_file(trace: &str) -> PathBuf {
        Path::new(OWN).join("traces").join(escape(trace))
    }

    /// The registration files of traces whose last day is before `day`.
    fn traces_before(&self, day: &str) -> Result<Vec<PathBuf>, StoreError> {
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

impl Backend for Local {
    fn has_others(&self) -> Result<bool, StoreError> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            entries => entries.map_err(StoreError::io(&self.root))?,
        };
        for entry in entries {
            if entry.map_err(StoreError::io(&self.root))?.file_name() != OWN {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn prepare(&self) -> Result<(), StoreError> {
        ["layouts", "traces", "transactions"].iter().try_for_each(|directory| create_synced(&self.own(directory)))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.root.join(path);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(StoreError::io(&path)),
        }
    }

    fn create(&self, path: &Path, contents: &[u8]) -> Result<bool, StoreError> {
        let path = self.root.join(path);
        let _locked = self.lock()?;
        if path.try_exists().map_err(StoreError::io(&path))? {
            return Ok(false);
        }
        publish(&path, contents).map(|()| true)
    }

    fn recover(&self) -> Result<(), StoreError> {
        self.recover(&self.lock()?)
    }

    fn has_trace(&self, trace: &str) -> Result<bool, StoreError> {
        let path = self.root.join(Self::trace_file(trace));
        path.try_exists().map_err(StoreError::io(&path))
    }

    fn begin(&self) -> Result<Transaction, StoreError> {
        Ok(Box::new(self.begin(&self.lock()?)?))
    }

    fn parts(&self) -> Result<Parts, StoreError> {
        files::parts(&self.root)
    }

    fn contents(&self, file: &PartFile) -> Result<Contents, StoreError> {
        let path = self.root.join(&file.path);
        File::open(&path).map(Contents::File).map_err(StoreError::io(&path))
    }

    fn maintain(&self) -> Result<Box<dyn Maintenance + '_>, StoreError> {
        Ok(Box::new(LocalMaintenance { store: self, _alone: lock_file(&self.own("maintenance"))? }))
    }
}

/// The right to replace and remove files.
struct LocalMaintenance<'a> {
    store: &'a Local,
    _alone: StoreLock,
}

impl Maintenance for LocalMaintenance<'_> {
    fn begin(&mut self) -> Result<Transaction, StoreError> {
        Backend::begin(self.store)
    }

    fn retain(&mut self, plan: &dyn Fn(&Parts) -> Plan) -> Result<RetentionSummary, StoreError> {
        // Hold the lock from the listing to the last change: a trace written meanwhile is then removed completely or not at all.
        let locked = self.store.lock()?;
        self.store.recover(&locked)?;
        let plan = plan(&self.store.parts()?);
        if let Some(end) = plan.end() {
            let mut change = self.store.begin(&locked)?;
            let traces = self.store.traces_before(&end)?;
            plan.directories.into_iter().chain(traces).for_each(|path| change.will_remove(path));
            change.apply_all(&locked)?;
        }
        Ok(plan.retained)
    }
}

/// Creates a directory and its parents, so that they persist after a power failure.
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

/// Waits for the lock on a file. Creates the file if it is missing.
fn lock_file(path: &Path) -> Result<StoreLock, StoreError> {
    let file = File::options().create(true).append(true).open(path).map_err(StoreError::io(path))?;
    lock_exclusively(&file).map_err(StoreError::io(path))?;
    Ok(StoreLock { _file: file })
}

/// Atomically creates or replaces a file.
fn publish(path: &Path, contents: &[u8]) -> Result<(), StoreError> {
    let (mut partial, directory) = (path.as_os_str().to_owned(), path.parent().unwrap_or(Path::new(".")));
    partial.push("~partial");
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    written.map_err(StoreError::io(Path::new(&partial)))?;
    fs::rename(&partial, path).map_err(StoreError::io(path))?;
    sync(directory)
}
