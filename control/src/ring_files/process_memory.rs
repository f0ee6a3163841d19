//! The memory of a session's rings, or of its statistics, in this process: what they take, and what they may take.
//!
//! Each process has a bound of its own, so that no process has to know what others take. Below it, the rings leave
//! [headroom](super::headroom) in the cgroup and the file system.

use super::headroom::{Place, places};
use crate::private_dir::PrivateDir;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the places that bound the process are not looked at again.
const FRESH: Duration = Duration::from_millis(20);
/// How long a request fails immediately after a refusal. What is full stays full for a while, and an attempt takes time.
const PAUSE: Duration = Duration::from_secs(1);

/// Rings have the largest size up to an eighth of the bound, and half of it for each further part.
const PARTS: u64 = 32;
const PARTS_OF_FULL_SIZE: u64 = PARTS / 8;

/// The memory of a session's rings, or of its statistics, in this process.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    /// What takes it: `rings` or `statistics`.
    what: &'static str,
    bound: u64,
    /// Where the files are; `None` if there are none.
    dir: Option<Arc<PrivateDir>>,
    used: AtomicU64,
    seen: Mutex<Seen>,
}

/// What was seen last.
#[derive(Debug, Default)]
struct Seen {
    /// When, with the bytes that the rings took then.
    places: Option<(Instant, u64, Vec<Place>)>,
    /// Time and reason of the last refusal, if no request succeeded since.
    refusal: Option<(Instant, io::ErrorKind, String)>,
}

impl ProcessMemory {
    pub(crate) fn new(what: &'static str, bound: u64, dir: Option<Arc<PrivateDir>>) -> Arc<Self> {
        Arc::new(Self { what, bound, dir, used: AtomicU64::new(0), seen: Mutex::default() })
    }

    /// The bytes that the rings take.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Why the last ring could not be made, if it could not.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.seen().refusal.as_ref().map(|(.., text)| text.clone())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last refusal, if it is so recent that another attempt is in vain.
    pub(super) fn recent_refusal(&self) -> Option<io::Error> {
        let seen = self.seen();
        let recent = seen.refusal.as_ref().filter(|(when, ..)| when.elapsed() < PAUSE);
        recent.map(|(_, kind, text)| io::Error::new(*kind, text.clone()))
    }

    /// Remembers the outcome of a request.
    pub(super) fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        let refusal = outcome.as_ref().err().map(|error| (Instant::now(), error.kind(), error.to_string()));
        self.seen().refusal = refusal;
        outcome
    }

    /// The size of the next ring, of those in `sizes`: the more memory the rings take, the less.
    pub(super) fn choose_size(&self, sizes: &[usize]) -> usize {
        let used = self.used();
        let room = self.tightest(used).map_or(u64::MAX, |place| place.room(used));
        let most = self.bound.min(used.saturating_add(room));
        let step = (used.saturating_mul(PARTS) / most.max(1)).saturating_sub(PARTS_OF_FULL_SIZE - 1);
        let first = usize::try_from(step).unwrap_or(usize::MAX).min(sizes.len() - 1);
        let fits = |size: &&usize| used.saturating_add(**size as u64) <= most;
        *sizes[first..].iter().find(fits).unwrap_or(&sizes[sizes.len() - 1])
    }

    /// How many bytes the rings may take in which threads go on, of the `configured` ones: a quarter of the bound, so that new threads find
    /// rings.
    pub(super) fn overflow_limit(&self, configured: usize) -> usize {
        configured.min(usize::try_from(self.bound / 4).unwrap_or(usize::MAX))
    }

    /// Reserves `len` bytes, if that leaves enough for the program.
    pub(crate) fn reserve(self: &Arc<Self>, len: usize) -> io::Result<Reservation> {
        self.take(len as u64)?;
        Ok(Reservation { memory: Arc::clone(self), bytes: AtomicU64::new(len as u64) })
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.check(used, bytes).inspect_err(|_| self.give_back(bytes))
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn check(&self, used: u64, bytes: u64) -> io::Result<()> {
        let what = self.what;
        if used.saturating_add(bytes) > self.bound {
            let text = format!(
                "the {what} of this process take {used} bytes, and {bytes} more would exceed its bound of {}; raise the bound \
                 (`--memory`, `.memory(bytes)`), or choose smaller or fewer {what}",
                self.bound
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        match self.tightest(used) {
            Some(place) if place.room(used) < bytes => Err(place.error(what)),
            _ => Ok(()),
        }
    }

    /// The place with the least room; `None` if there is no limit. `used`: the bytes that the rings take.
    fn tightest(&self, used: u64) -> Option<Place> {
        let mut seen = self.seen();
        if seen.places.as_ref().is_none_or(|(when, ..)| when.elapsed() >= FRESH) {
            seen.places = Some((Instant::now(), used, places(self.dir.as_ref().map(|dir| dir.fd()))));
        }
        let (_, before, places) = seen.places.as_ref()?;
        let taken = used.saturating_sub(*before);
        places.iter().map(|place| place.after(taken)).min_by_key(|place| place.room(used))
    }
}

/// Memory that is reserved. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<ProcessMemory>,
    bytes: AtomicU64,
}

impl Reservation {
    /// Gives a part back.
    pub(super) fn shrink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.memory.give_back(bytes as u64);
    }

    /// Reserves so much more.
    pub(super) fn grow(&self, bytes: usize) -> io::Result<()> {
        self.memory.note(self.memory.take(bytes as u64))?;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.give_back(*self.bytes.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;
    const SIZES: [usize; 5] = [1044 * KIB, 520 * KIB, 264 * KIB, 136 * KIB, 72 * KIB];

    /// Takes rings until there is no room for another one.
    fn fill(bound: u64) -> Vec<usize> {
        let memory = ProcessMemory::new("rings", bound, None);
        memory.seen().places = Some((Instant::now() + Duration::from_secs(3600), 0, Vec::new()));
        let mut taken = Vec::new();
        let mut sizes = Vec::new();
        loop {
            let size = memory.choose_size(&SIZES);
            let Ok(reservation) = memory.reserve(size) else { break };
            taken.push(reservation);
            sizes.push(size);
        }
        assert!(memory.used() <= bound);
        drop(taken);
        assert_eq!(memory.used(), 0);
        sizes
    }

    #[test]
    fn rings_get_smaller_so_that_more_than_a_thousand_fit() {
        let sizes = fill(128 << 20);
        assert!(sizes.len() > 1200, "{}", sizes.len());
        assert!(sizes.is_sorted_by(|a, b| a >= b));
        let count = |size: usize| sizes.iter().filter(|other| **other == size).count();
        assert_eq!([count(SIZES[0]), count(SIZES[1])], [16, 8]);
    }

    #[test]
    fn little_memory_has_room_for_several_rings() {
        assert!(fill(8 << 20).len() > 64);
        assert_eq!(fill(200 << 10), [136 * KIB]);
        assert_eq!(fill(10 << 10), [0; 0]);
    }

    #[test]
    fn a_refusal_says_what_to_raise() {
        let memory = ProcessMemory::new("rings", 100, None);
        let error = memory.note(memory.reserve(101)).expect_err("it is too much").to_string();
        assert!(error.contains("bound of 100") && error.contains("--memory"), "{error}");
        assert_eq!(memory.refusal(), Some(error));
        assert!(memory.recent_refusal().is_some());
        assert!(memory.note(memory.reserve(1)).is_ok() && memory.refusal().is_none());
    }
}
