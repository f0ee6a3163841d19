//! Rings in files: memory that outlives the process, and that other processes can read.
//!
//! `docs/format-ring.md` describes the files. The ring itself writes everything except the identity page.

mod identity;
mod mapping;

pub(crate) use identity::pid_namespace_of;

use crate::session_dir::{ProcessDir, WAKE_SIZE};
use identity::Identity;
use mapping::Mapping;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracepoint_core::channel::{MemorySource, RING_IDENTITY, RingMemory, RingRequest};

/// Suffix of the names of ring files.
pub(crate) const RING_SUFFIX: &str = ".ring";

/// Bytes allocated per `fallocate` call. A signal makes the call start over, and a profiled program gets thousands of them a second.
const PART: u64 = 1 << 20;

/// How long ring creation fails immediately after a refusal. A full file system stays full for a while; an attempt takes time, and
/// briefly takes the last space that other programs have.
const PAUSE: Duration = Duration::from_secs(1);

/// Makes a file in the process's directory for each ring.
#[derive(Debug)]
pub(crate) struct RingFiles {
    dir: Arc<ProcessDir>,
    identity: Identity,
    /// Maximum size of the ring files of all processes of the session, in bytes.
    cap: u64,
    /// Counts the pages lost when files are truncated; `None` if truncation may end the program (SIGBUS).
    cut_off: Option<Arc<AtomicU64>>,
    /// Time and reason of the last refusal.
    refused: Mutex<Option<(Instant, io::ErrorKind, String)>>,
}

impl RingFiles {
    /// Ring files in `dir`, for the session called `session`. With `cut_off`, a file may be truncated while the session runs.
    pub(crate) fn new(dir: Arc<ProcessDir>, session: &str, cap: u64, cut_off: Option<Arc<AtomicU64>>) -> Self {
        let identity = Identity::of_this_process(session, &dir.metadata_path());
        Self { dir, identity, cap, cut_off, refused: Mutex::new(None) }
    }

    fn make(&self, name: &str, request: RingRequest<'_>) -> io::Result<Mapping> {
        let file = self.dir.make_counted(name, request.len as u64, self.cap)?;
        let map = || {
            let mut mapping = Mapping::of(&file, request.len)?;
            self.cut_off.as_ref().map_or(Ok(()), |cut_off| mapping.guard(cut_off))?;
            Ok(mapping)
        };
        let mapped = allocate(&file, request.len as u64).and_then(|()| map());
        let mut mapping = mapped.inspect_err(|_| self.dir.dir().remove_file(name))?;
        mapping.write(RING_IDENTITY.start, &self.identity.page(request.channel));
        Ok(mapping)
    }
}

/// Maps the file with the word on which the remote consumer of a session sleeps. `cut_off` as in [`RingFiles::new`].
pub(crate) fn map_wake_file(file: &File, cut_off: Option<&Arc<AtomicU64>>) -> io::Result<Box<dyn RingMemory>> {
    let mut mapping = Mapping::of(file, WAKE_SIZE)?;
    cut_off.map_or(Ok(()), |cut_off| mapping.guard(cut_off))?;
    Ok(Box::new(mapping))
}

impl MemorySource for RingFiles {
    /// Without the file, as in a full run directory, the consumer comes at its own intervals.
    fn wake_memory(&self) -> Option<Box<dyn RingMemory>> {
        let file = self.dir.wake_file().ok()??;
        map_wake_file(&file, self.cut_off.as_ref()).ok()
    }

    fn ring_memory(&self, request: RingRequest<'_>) -> io::Result<Box<dyn RingMemory>> {
        if request.len < RING_IDENTITY.end {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a ring has no room for its header"));
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kind, text)) = refused.as_ref().filter(|(when, ..)| when.elapsed() < PAUSE) {
            return Err(io::Error::new(*kind, text.clone()));
        }
        let name = file_name(&request);
        match self.make(&name, request) {
            Ok(mapping) => Ok(Box::new(mapping)),
            Err(error) => {
                let text = format!(
                    "cannot make {} of {} bytes: {error}{}",
                    self.dir.path().join(&name).display(),
                    request.len,
                    mend(error.kind())
                );
                *refused = Some((Instant::now(), error.kind(), text.clone()));
                Err(io::Error::new(error.kind(), text))
            }
        }
    }
}

/// What the user can do about the error; empty if the message says so already or there is no general advice.
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

/// Allocates space for the whole file now. If space ran out later, a store into the mapping would end the program with SIGBUS.
fn allocate(file: &File, len: u64) -> io::Result<()> {
    let mut from = 0;
    while from < len {
        let part = PART.min(len - from);
        match fallocate(file, FallocateFlags::empty(), from, part) {
            Ok(()) => from += part,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) => return fill(file, len),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Allocates by writing zeros, for file systems without `fallocate`.
fn fill(mut file: &File, len: u64) -> io::Result<()> {
    let zeros = [0; 16 << 10];
    let mut left = len;
    while left > 0 {
        let part = left.min(zeros.len() as u64) as usize;
        file.write_all(&zeros[..part])?;
        left -= part as u64;
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

    #[test]
    fn files_are_filled_where_fallocate_is_unsupported() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        fill(&file, 150_001)?;
        assert_eq!(file.metadata()?.len(), 150_001);
        Ok(())
    }
}
