//! The counterpart on systems other than Linux. Space is not reserved there: a full disk may also refuse the end of a stream.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A file to which bytes are appended.
#[derive(Debug)]
pub(crate) struct AppendedFile(Arc<File>);

impl AppendedFile {
    pub(crate) fn new(file: File, _path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(file)))
    }

    pub(crate) fn get(&self) -> io::Result<Arc<File>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Returns `false`: this only matters where space is reserved.
pub(crate) const fn is_in_memory(_file: &File) -> bool {
    false
}

/// Returns the largest number: a write beyond a limit fails.
pub(crate) const fn file_size_limit() -> u64 {
    u64::MAX
}

/// Does nothing.
pub(crate) const fn reserve(_file: &File, _offset: u64, _bytes: u64) -> io::Result<()> {
    Ok(())
}

/// Truncates a file to which bytes are appended. On Windows such a file is not opened for appending, and writes at its cursor.
pub(crate) fn truncate(mut file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length)).map(drop)
}

/// Returns the time since an arbitrary moment in ns.
pub(crate) fn monotonic() -> u64 {
    tracepoint_ring::clock::now()
}

/// Returns the processor time of the calling thread; 0 on Windows, where the standard library does not know it.
pub(crate) fn thread_cpu_time() -> Duration {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
    }
    #[cfg(not(unix))]
    Duration::ZERO
}

/// Does nothing: only Linux has a signal stack per thread that must fit.
pub(crate) const fn check_address_space(_bytes: usize) -> io::Result<()> {
    Ok(())
}
