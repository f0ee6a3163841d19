//! What the sinks need of Linux, except in directories.

use fileguard::{CheckedFd, ReopenableFd};
use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatfs};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The type of tmpfs reported by `statfs`.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// A file to which bytes are appended. It is reopened if the program closes its descriptor.
#[derive(Debug)]
pub(crate) struct AppendedFile(ReopenableFd<File>);

impl AppendedFile {
    /// Keeps `file`, which was opened at `path`.
    pub(crate) fn new(file: File, path: &Path) -> io::Result<Self> {
        ReopenableFd::new(file, path, OFlags::WRONLY | OFlags::APPEND).map(Self)
    }

    /// Returns the open file, for immediate use.
    pub(crate) fn get(&self) -> io::Result<CheckedFd<File>> {
        self.0.get()
    }
}

/// Returns whether the file is in memory.
pub(crate) fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|of| u64::try_from(of.f_type) == Ok(TMPFS_MAGIC))
}

/// Returns the limit on the sizes of files. A write beyond it sends SIGXFSZ to the program.
pub(crate) fn file_size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Reserves space in the file, and leaves its length as it is.
pub(crate) fn reserve(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, offset, bytes)?)
}

/// Truncates a file to which bytes are appended.
pub(crate) fn truncate(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// Returns `CLOCK_MONOTONIC` in ns.
pub(crate) fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec.cast_unsigned()).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.cast_unsigned())
}

/// Returns the processor time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Fails if the process cannot have so much more address space.
pub(crate) fn check_address_space(bytes: usize) -> io::Result<()> {
    MmapMut::map_anon(bytes).map(drop)
}
