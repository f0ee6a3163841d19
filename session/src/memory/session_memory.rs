//! The ring memory of all processes of a session: a sum in a mapped file. The cost of creating a ring does not depend on the number of
//! processes, and no process waits for another.
//!
//! A process creates the file of a ring without allocating memory, adds its length to the sum, and allocates the memory if the sum stays
//! below the cap. It subtracts the length when the ring is unmapped, or a part of it released, and removes the file after that.
//! Reservations of a killed process stay in the sum until a request of another process is refused. That process then counts the rings of
//! all living processes, which takes a few system calls for each, and corrects the sum. Counting takes at most a twentieth of the time, and
//! only one process counts at a time.
//!
//! The sum is never too small: it is read before the files are counted, so every length that it contains belongs to a file that is found. A
//! ring that is created or removed meanwhile may be counted twice, until the next count.

use super::process_memory::SharedMemory;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tracepoint_run_dir::ring_files::MappedMemorySum;
use tracepoint_run_dir::session_dir::{MemorySum, ProcessDir, RingDirError};

/// The minimum pause between two counts, as a multiple of the duration of a count; and the maximum pause.
const REST: u32 = 19;
const MAX_REST: Duration = Duration::from_secs(10);

/// The sum of a session's rings.
#[derive(Debug)]
pub(crate) struct SessionMemory {
    map: MappedMemorySum,
    dir: Arc<ProcessDir>,
    /// Maximum size of the rings of all processes, in bytes.
    cap: Option<u64>,
    /// The process that mapped the file: a forked child has no mapping.
    process: u32,
}

impl SessionMemory {
    /// Opens the sum of the session in which `dir` is this process's directory.
    pub(crate) fn open(dir: Arc<ProcessDir>, cap: Option<u64>) -> Result<Self, RingDirError> {
        Ok(Self { map: MappedMemorySum::open(&dir)?, dir, cap, process: process::id() })
    }

    /// The words of the file; `None` in a forked child. All accesses are Relaxed, except that [`change`] is ordered with the system calls
    /// that make, count and remove files: Release after the file was made, and before it is removed; Acquire before files are counted.
    fn sum(&self) -> Option<&MemorySum> {
        (process::id() == self.process).then(|| self.map.words())
    }
}

impl SharedMemory for SessionMemory {
    fn bytes(&self) -> u64 {
        self.sum().map_or(0, |sum| sum.bytes.load(Ordering::Relaxed))
    }

    fn change(&self, more: u64, less: u64) {
        self.sum().into_iter().for_each(|sum| change(sum, more, less));
    }

    fn check(&self, bytes: u64) -> io::Result<()> {
        let Some((cap, sum)) = self.cap.map(|cap| (cap, self.bytes())).filter(|(cap, sum)| sum > cap) else {
            return Ok(());
        };
        let others = sum.saturating_sub(bytes);
        let text = format!(
            "the session's rings take {others} bytes, and {bytes} more would exceed its cap of {cap}; raise the cap \
             (`--memory-cap`, `.memory_cap(bytes)`), or choose smaller or fewer rings"
        );
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
    }

    fn count(&self) -> bool {
        self.sum().is_some_and(|sum| correct(sum, || self.dir.memory_of_living()))
    }
}

fn change(sum: &MemorySum, more: u64, less: u64) {
    let changed = |bytes: u64| Some(bytes.saturating_add(more).saturating_sub(less));
    // Never fails: `changed` always returns a new sum.
    let _ = sum.bytes.fetch_update(Ordering::AcqRel, Ordering::Relaxed, changed);
}

/// Corrects the sum, unless that was done too recently, or another process is doing so.
fn correct(sum: &MemorySum, count: impl FnOnce() -> io::Result<u64>) -> bool {
    let (began, again) = (now(), sum.count_again.load(Ordering::Relaxed));
    // A time too far in the future is from an earlier boot.
    if (began..=began + MAX_REST.as_nanos() as u64).contains(&again) {
        return false;
    }
    // No other process counts before this time.
    let until = began + MAX_REST.as_nanos() as u64;
    if sum.count_again.compare_exchange(again, until, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return false;
    }
    // Acquire, pairs with the Release of `change`: the files of all rings in the sum are found.
    let before = sum.bytes.load(Ordering::Acquire);
    let counted = count();
    if let Ok(counted) = &counted {
        change(sum, *counted, before);
    }
    let rest = Duration::from_nanos(now() - began).saturating_mul(REST).min(MAX_REST);
    sum.count_again.store(now() + rest.as_nanos() as u64, Ordering::Relaxed);
    counted.is_ok()
}

/// `CLOCK_MONOTONIC` in ns, which all processes share.
#[cfg(target_os = "linux")]
fn now() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::Monotonic)).map_or(0, |now| now.as_nanos() as u64)
}

#[cfg(not(target_os = "linux"))]
fn now() -> u64 {
    tracepoint_core::clock::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn rings_are_counted_seldom_and_what_the_dead_had_is_given_back() {
        let sum = MemorySum { bytes: AtomicU64::new(100), ..MemorySum::default() };
        let count = |bytes: u64| {
            correct(&sum, || {
                std::thread::sleep(Duration::from_millis(50));
                // Another process creates a ring meanwhile.
                sum.bytes.fetch_add(5, Ordering::Relaxed);
                Ok(bytes)
            })
        };
        assert!(count(20));
        assert_eq!(sum.bytes.load(Ordering::Relaxed), 25, "20 of the living, 5 meanwhile");
        assert!(!count(0), "not again so soon");
        sum.count_again.store(1, Ordering::Relaxed);
        assert!(count(200));
        assert_eq!(sum.bytes.load(Ordering::Relaxed), 205);
    }
}
