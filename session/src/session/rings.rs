//! The location and the memory cap of a session's rings.

use super::SessionError;
use crate::drain_thread::streams_file::{Senders, StreamsFile};
use crate::memory::{ProcessMemory, SessionMemory};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_core::channel::MemorySource;
use tracepoint_run_dir::bandwidth::Buckets;
use tracepoint_run_dir::ring_files::{MemoryImage, RingFiles, RingsInMemory};
use tracepoint_run_dir::rundir::{RunDir, RunDirError};
use tracepoint_run_dir::session_dir::{KeepDead, Options, Place, ProcessDir, RingDirError};
use tracepoint_session_spec::Limits;
use tracepoint_sinks::Sink;

/// Location of a session's rings in this process. Not part of the session's description: each process chooses its own.
#[derive(Debug)]
pub(crate) struct RingPlace {
    pub(super) in_memory: bool,
    pub(super) place: Place,
    pub(super) allow_disk: bool,
    pub(super) survive_cut_off: bool,
}

impl Default for RingPlace {
    /// In the run directory; in memory on systems that have none.
    fn default() -> Self {
        let in_memory = cfg!(not(target_os = "linux"));
        Self { in_memory, place: Place::default(), allow_disk: false, survive_cut_off: false }
    }
}

impl RingPlace {
    /// Returns whether the rings are in the directory that controllers read.
    pub(super) fn is_in_run_dir(&self) -> bool {
        !self.in_memory && self.place == Place::RunDir
    }

    /// Returns the reason why the rings of this process may not be in that directory: it has more rights than the controllers.
    pub(super) fn refusal(&self) -> Option<String> {
        let refused = |error: &RunDirError| error.is_for_rights();
        if self.is_in_run_dir() {
            RunDir::of_traced_process().err().filter(refused).map(|error| error.to_string())
        } else {
            None
        }
    }

    pub(crate) fn set_dir(&mut self, path: PathBuf) {
        (self.in_memory, self.place) = (false, Place::At(path));
    }
}

/// The store of the rings, with their descriptions for readers.
#[derive(Clone, Debug)]
pub(super) enum RingStore {
    /// In files of a directory.
    Files(Arc<ProcessDir>),
    /// In anonymous memory.
    Memory(Arc<MemoryImage>),
}

impl RingStore {
    /// The directory of the files.
    pub(super) const fn dir(&self) -> Option<&Arc<ProcessDir>> {
        match self {
            Self::Files(dir) => Some(dir),
            Self::Memory(_) => None,
        }
    }

    /// Replaces the metadata, and the list of outputs unless another process writes it.
    pub(super) fn describe(&self, metadata: &str, outputs: Option<&[u8]>) -> Result<(), RingDirError> {
        match self {
            Self::Files(dir) => dir.describe(metadata, outputs)?,
            Self::Memory(image) => image.describe(metadata, outputs.unwrap_or_default()),
        }
        Ok(())
    }
}

/// The memory of a session's rings.
#[derive(Debug)]
pub(super) struct Rings {
    session: String,
    pub(super) store: RingStore,
    pub(super) memory: Arc<ProcessMemory>,
    /// The limits with which it began.
    pub(super) limits: Limits,
    /// Counts the pages lost when ring files are truncated; `None` if truncation may end the program.
    pub(super) cut_off: Option<Arc<AtomicU64>>,
    senders: Senders,
}

impl Rings {
    /// Creates the directory for the rings of the session called `session`, if they are in files.
    pub(super) fn make(place: RingPlace, limits: &Limits, session: &str) -> Result<Self, RingDirError> {
        let keep_dead = KeepDead { processes: limits.keep_dead, bytes: limits.keep_dead_bytes };
        let options = Options { place: place.place, allow_disk: place.allow_disk, keep_dead };
        let dir = if place.in_memory { None } else { Some(Arc::new(ProcessDir::make(&options, session)?)) };
        let cut_off = place.survive_cut_off.then(Arc::default);
        let sum = dir.as_ref().map(|dir| SessionMemory::open(Arc::clone(dir), limits.memory_cap)).transpose();
        // If the sum cannot be created, only a session with a cap fails.
        let sum = sum.or_else(|error| limits.memory_cap.map_or(Ok(None), |_| Err(error)))?;
        let sum = sum.map(|sum| Box::new(sum) as _);
        let memory = ProcessMemory::in_session("rings", limits.memory, dir.as_ref().map(|dir| dir.shared_dir()), sum);
        let store = dir.map_or_else(|| RingStore::Memory(MemoryImage::new(session)), RingStore::Files);
        Ok(Self {
            session: session.to_owned(),
            store,
            memory,
            limits: limits.clone(),
            cut_off,
            senders: Senders::default(),
        })
    }

    /// Makes a sink that sends over a network share the caps on the bandwidth with other processes, and stores its peer's acknowledgements
    /// for recovery.
    pub(super) fn attach_sender(&self, sink: &mut dyn Sink) -> Result<(), SessionError> {
        self.senders.add(sink);
        let failed = |error| SessionError::Sink(format!("cannot share the cap on the bandwidth: {error}"));
        Buckets::share(sink, self.store.dir().map(|dir| dir.session())).map_err(failed)
    }

    /// Returns the file next to the rings with the progress of the senders.
    pub(super) fn streams_file(&self) -> Option<StreamsFile> {
        self.store.dir().map(|dir| StreamsFile::new(Arc::clone(dir), self.senders.clone()))
    }

    /// The source of ring memory: files if there is a directory, else anonymous memory.
    pub(super) fn source(&self) -> Box<dyn MemorySource> {
        let memory = Arc::clone(&self.memory);
        match &self.store {
            RingStore::Files(dir) => {
                let dir = Arc::clone(dir);
                Box::new(RingFiles::new(dir, &self.session, memory, self.cut_off.clone()))
            }
            RingStore::Memory(image) => Box::new(RingsInMemory { memory, image: Arc::clone(image) }),
        }
    }
}
