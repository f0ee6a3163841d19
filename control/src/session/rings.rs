//! What the description of a session says of its rings' memory.

use crate::ring_files::RingFiles;
use crate::session_dir::{KeepDead, Options, Place, ProcessDir, RingDirError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_core::channel::{AnonymousMemory, MemorySource};

/// Where the rings are, and how much they may take.
#[derive(Debug)]
pub(super) struct Rings {
    in_memory: bool,
    options: Options,
    memory_cap: u64,
    /// Counts pages of files that were cut off; `None` if the program may end then.
    cut_off: Option<Arc<AtomicU64>>,
}

impl Default for Rings {
    fn default() -> Self {
        let options =
            Options { place: Place::RunDir, allow_disk: false, keep_dead: KeepDead { processes: 8, bytes: 1 << 30 } };
        Self { in_memory: false, options, memory_cap: 1 << 30, cut_off: None }
    }
}

impl Rings {
    pub(super) fn in_memory(&mut self) {
        self.in_memory = true;
    }

    pub(super) fn at(&mut self, path: PathBuf) {
        self.in_memory = false;
        self.options.place = Place::At(path);
    }

    pub(super) const fn allow_disk(&mut self, allow: bool) {
        self.options.allow_disk = allow;
    }

    pub(super) const fn keep_dead(&mut self, processes: usize) {
        self.options.keep_dead.processes = processes;
    }

    pub(super) const fn keep_dead_bytes(&mut self, bytes: u64) {
        self.options.keep_dead.bytes = bytes;
    }

    pub(super) const fn memory_cap(&mut self, bytes: u64) {
        self.memory_cap = bytes;
    }

    pub(super) fn survive_cut_off(&mut self, survive: bool) {
        self.cut_off = survive.then(Arc::default);
    }

    /// How many pages were cut off so far, where that is survived.
    pub(super) fn cut_off(&self) -> Option<Arc<AtomicU64>> {
        self.cut_off.clone()
    }

    /// Makes the directory for them in the session called `session`, if they are to be in files.
    pub(super) fn make_dir(&self, session: &str) -> Result<Option<Arc<ProcessDir>>, RingDirError> {
        if self.in_memory {
            return Ok(None);
        }
        Ok(Some(Arc::new(ProcessDir::make(&self.options, session)?)))
    }

    /// Where their memory comes from: files in `dir`, if there is one.
    pub(super) fn source(&self, dir: Option<&Arc<ProcessDir>>, session: &str) -> Box<dyn MemorySource> {
        match dir {
            Some(dir) => Box::new(RingFiles::new(Arc::clone(dir), session, self.memory_cap, self.cut_off())),
            None => Box::new(AnonymousMemory),
        }
    }
}
