//! Rings in files, and other mapped files next to them.

use super::mapping::Mapping;
use super::reservation::{MemoryPolicy, Reservation};
use crate::layout::RING_SUFFIX;
use crate::own_process::thread_count;
use crate::ring_identity::Identity;
use crate::session_dir::{MEMORY, MEMORY_SIZE, MemorySum, ProcessDir, RingDirError, WAKE_SIZE};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_ring::channel::{MemorySource, RING_IDENTITY, RingMemory, RingRequest};
use tracepoint_sinks::Bucket;

/// Bytes allocated per `fallocate` call. A signal restarts the call, and a profiled program receives thousands of signals a second.
const PART: u64 = 1 << 20;

/// Creates a file in the process's directory for each ring.
#[derive(Debug)]
pub struct RingFiles {
    dir: Arc<ProcessDir>,
    identity: Identity,
    memory: Arc<dyn MemoryPolicy>,
    /// Counts the pages lost when files are truncated; `None` if truncation may end the program (SIGBUS).
    cut_off: Option<Arc<AtomicU64>>,
}

impl RingFiles {
    /// Creates ring files in `dir`, for the session called `session`. With `cut_off`, a file may be truncated while the session runs.
    pub fn new(
        dir: Arc<ProcessDir>,
        session: &str,
        memory: Arc<dyn MemoryPolicy>,
        cut_off: Option<Arc<AtomicU64>>,
    ) -> Self {
        let identity = Identity::of_this_process(session, &dir.metadata_path());
        Self { dir, identity, memory, cut_off }
    }

    fn make(&self, name: &str, request: RingRequest<'_>) -> io::Result<Mapping> {
        // The file exists before its length is added to the sum, and until the length is subtracted, so that a process that counts the
        // rings finds it.
        let file = self.dir.make_ring_file(name, request.len as u64)?;
        let map = || -> io::Result<Mapping> {
            let reservation = Reservation::new(Arc::clone(&self.memory), request.len)?;
            allocate(&file, 0..request.len as u64)?;
            reservation.check_allocated()?;
            let mut mapping = Mapping::of(&file, (Arc::clone(&self.dir), name.to_owned()), request.len, reservation)?;
            self.cut_off.as_ref().map_or(Ok(()), |cut_off| mapping.guard(cut_off))?;
            Ok(mapping)
        };
        let mut mapping = map().inspect_err(|_| self.dir.dir().remove_file(name))?;
        mapping.write(RING_IDENTITY.start, &self.identity.page(request.channel));
        Ok(mapping)
    }
}

/// Maps the wake file, which contains the word that the remote consumer of a session sleeps on. `cut_off` as in [`RingFiles::new`].
pub fn map_wake_file(file: &File, cut_off: Option<&Arc<AtomicU64>>) -> io::Result<Box<dyn RingMemory>> {
    let mut mapping = Mapping::shared(file, WAKE_SIZE)?;
    cut_off.map_or(Ok(()), |cut_off| mapping.guard(cut_off))?;
    Ok(Box::new(mapping))
}

/// The mapped file with the sum of the ring memory of all processes of a session.
#[derive(Debug)]
pub struct MappedMemorySum(Mapping);

impl MappedMemorySum {
    /// Maps the file of the session in which `dir` is this process's directory. If the file is truncated, the sum is zero from then on, for
    /// this process.
    ///
    /// # Errors
    ///
    /// If the file cannot be created or mapped.
    pub fn open(dir: &ProcessDir) -> Result<Self, RingDirError> {
        let file = dir.open_memory()?;
        let map = || -> io::Result<Mapping> {
            let mut mapping = Mapping::shared(&file, MEMORY_SIZE)?;
            mapping.guard(&Arc::default())?;
            Ok(mapping)
        };
        Ok(Self(map().map_err(|error| dir.session().failed("map", MEMORY, error))?))
    }

    /// Returns the words. A forked child has no mapping, and must not access them.
    pub fn words(&self) -> &MemorySum {
        self.0.as_ref()
    }
}

/// Maps the words of a token bucket in a file that other processes also map. Truncation of the file does not end the program.
pub(crate) fn map_bucket(file: &File, len: usize) -> io::Result<Bucket> {
    let mut mapping = Mapping::shared(file, len)?;
    mapping.guard(&Arc::default())?;
    Ok(Bucket::over(mapping))
}

impl MemorySource for RingFiles {
    /// Without the file, as in a full run directory, the consumer polls at its own intervals.
    fn wake_memory(&self) -> Option<Box<dyn RingMemory>> {
        let file = self.dir.wake_file().ok()??;
        map_wake_file(&file, self.cut_off.as_ref()).ok()
    }

    fn choose_size(&self, sizes: &[usize]) -> usize {
        self.memory.choose_size(sizes)
    }

    fn overflow_limit(&self, configured: usize) -> usize {
        self.memory.overflow_limit(configured)
    }

    fn thread_count(&self) -> Option<usize> {
        thread_count()
    }

    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        if request.len < RING_IDENTITY.end {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a ring has no room for its header"));
        }
        if let Some(refusal) = self.memory.recent_refusal(request.len) {
            return Err(refusal);
        }
        let name = file_name(&request);
        let made = self.make(&name, request).map_err(|error| {
            let text = format!(
                "cannot make {} of {} bytes: {error}{}",
                self.dir.path().join(&name).display(),
                request.len,
                mend(error.kind())
            );
            io::Error::new(error.kind(), text)
        });
        self.memory.note(request.len, made.as_ref().err());
        Ok(Box::new(made?))
    }
}

/// Returns advice about the error; empty if the message contains it already or no general advice exists.
fn mend(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull => "; make room there, or name a directory on another file system (`.dir(path)`)",
        io::ErrorKind::NotFound => "; the session's directory was removed",
        _ => "",
    }
}

fn file_name(request: &RingRequest<'_>) -> String {
    match request.index {
        Some(index) => format!("{}-{index}{RING_SUFFIX}", request.class),
        None => format!("{}-orphans{RING_SUFFIX}", request.class),
    }
}

/// Allocates space for these bytes of a file now. If space ran out later, a store into the mapping would end the program with SIGBUS.
pub(super) fn allocate(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let mut from = bytes.start;
    while from < bytes.end {
        let part = PART.min(bytes.end - from);
        match fallocate(file, FallocateFlags::empty(), from, part) {
            Ok(()) => from += part,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) => return fill(file, from..bytes.end),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Allocates by writing zeros, for file systems without `fallocate`.
fn fill(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let zeros = [0; 16 << 10];
    let mut from = bytes.start;
    while from < bytes.end {
        let part = (bytes.end - from).min(zeros.len() as u64);
        file.write_all_at(&zeros[..part as usize], from)?;
        from += part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_class_and_the_ring() {
        assert_eq!(file_name(&RingRequest::new("c", 3, Some(12), 4096)), "3-12.ring");
        assert_eq!(file_name(&RingRequest::new("c", 0, None, 4096)), "0-orphans.ring");
    }

    /// A policy that refuses everything, and lists the files whenever it is asked.
    #[derive(Debug)]
    struct ListingPolicy(Arc<ProcessDir>, std::sync::Mutex<Vec<Vec<String>>>);

    impl MemoryPolicy for ListingPolicy {
        fn take(&self, _: u64) -> io::Result<()> {
            let mut names = self.0.dir().names().unwrap_or_default();
            names.sort();
            self.1.lock().expect("not poisoned").push(names);
            Err(io::ErrorKind::QuotaExceeded.into())
        }

        fn give_back(&self, _: u64) {}
    }

    /// Otherwise two processes that start at once could both stay below the cap, each not counting the other's ring.
    #[test]
    fn a_ring_whose_bytes_are_reserved_has_a_file() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir_in("/dev/shm")?;
        let place = crate::session_dir::Place::At(temp.path().join("session"));
        let keep_dead = crate::session_dir::KeepDead::NONE;
        let options = crate::session_dir::Options { place, allow_disk: false, keep_dead };
        let dir = Arc::new(ProcessDir::make(&options, "s")?);
        let policy = Arc::new(ListingPolicy(Arc::clone(&dir), std::sync::Mutex::default()));
        let rings = RingFiles::new(Arc::clone(&dir), "s", policy.clone(), None);
        let refused = rings.ring_memory(RingRequest::new("c", 0, Some(0), 64 << 10));
        assert_eq!(refused.map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::QuotaExceeded));
        assert_eq!(*policy.1.lock().expect("not poisoned"), [["0-0.ring", "alive"]]);
        assert_eq!(dir.dir().names()?, ["alive"], "the refused ring has no file");
        Ok(())
    }

    #[test]
    fn files_are_filled_where_fallocate_is_unsupported() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        fill(&file, 0..150_001)?;
        assert_eq!(file.metadata()?.len(), 150_001);
        Ok(())
    }
}
