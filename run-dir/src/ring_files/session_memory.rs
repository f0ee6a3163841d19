//! What the rings of all processes of a session take together: a sum in a mapped file, so that making a ring costs the same however many
//! processes there are, and no process waits for another.
//!
//! A process makes the file of a ring, without memory yet, adds its length to the sum, and takes the memory if the sum stays below the cap. It
//! subtracts the length when the ring is unmapped, or a part of it given back, and removes the file after that. What a killed process had
//! reserved stays in the sum until a process is refused: it then counts the rings of all living processes, which is a look at each of them,
//! and corrects the sum. Counting takes at most a twentieth of the time, and one process counts at a time.
//!
//! The sum is never too small: it is read before the files are counted, so a length that it contains is that of a file which is found. A
//! ring that is made or removed meanwhile may be in it twice, until the next count.

use super::mapping::Mapping;
use super::process_memory::SharedMemory;
use crate::session_dir::{MEMORY, MEMORY_SIZE, MemorySum, ProcessDir, RingDirError};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How much longer than counting the time until it may be done again is, and the longest such time.
const REST: u32 = 19;
const MAX_REST: Duration = Duration::from_secs(10);

/// The sum of a session's rings.
#[derive(Debug)]
pub struct SessionMemory {
    map: Mapping,
    dir: Arc<ProcessDir>,
    /// The most that the rings of all processes may take, in bytes.
    cap: Option<u64>,
    /// A forked child has not mapped the file.
    process: u32,
}

impl SessionMemory {
    /// That of the session in which `dir` is this process's directory.
    pub fn open(dir: Arc<ProcessDir>, cap: Option<u64>) -> Result<Self, RingDirError> {
        let file = dir.open_memory()?;
        let failed = |error| dir.session().failed("map", MEMORY, error);
        let mut map = Mapping::shared(&file, MEMORY_SIZE).map_err(failed)?;
        // If the file is cut off, the sum is zero from then on, for this process.
        map.guard(&Arc::default()).map_err(failed)?;
        Ok(Self { map, dir, cap, process: process::id() })
    }

    /// The words of the file; `None` in a forked child. All accesses are Relaxed, except that [`change`] is ordered with the system calls
    /// that make, count and remove files: Release after the file was made, and before it is removed; Acquire before files are counted.
    fn sum(&self) -> Option<&MemorySum> {
        (process::id() == self.process).then(|| self.map.as_ref())
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
    // Never fails: there is always a new sum.
    let _ = sum.bytes.fetch_update(Ordering::AcqRel, Ordering::Relaxed, changed);
}

/// Corrects the sum, unless that was done too recently, or by another process now.
fn correct(sum: &MemorySum, count: impl FnOnce() -> io::Result<u64>) -> bool {
    let (began, again) = (now(), sum.count_again.load(Ordering::Relaxed));
    // A time that is too far ahead is of an earlier boot.
    if (began..=began + MAX_REST.as_nanos() as u64).contains(&again) {
        return false;
    }
    // While it counts, no other process does.
    let until = began + MAX_REST.as_nanos() as u64;
    if sum.count_again.compare_exchange(again, until, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return false;
    }
    // Acquire, with the Release of `change`: the files of the rings that it contains are found.
    let before = sum.bytes.load(Ordering::Acquire);
    let counted = count();
    if let Ok(counted) = &counted {
        change(sum, *counted, before);
    }
    let rest = Duration::from_nanos(now() - began).saturating_mul(REST).min(MAX_REST);
    sum.count_again.store(now() + rest.as_nanos() as u64, Ordering::Relaxed);
    counted.is_ok()
}

fn now() -> u64 {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).map_or(0, |now| now.as_nanos() as u64)
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
                // Another process makes a ring meanwhile.
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
