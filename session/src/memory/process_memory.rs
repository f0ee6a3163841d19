//! The memory of a session's rings, or of its statistics, in this process, and its limits.
//!
//! Each process has its own bound. In addition, the rings of all processes of the session together stay below its cap, if there is one, and
//! leave [headroom](super::headroom) in the cgroup, the file system and the machine. Many processes that start at once each find much
//! memory free; therefore the sum of all [reservations](SharedMemory) counts, not the memory that is already in use. Memory that others have
//! reserved but not allocated at the time of an observation still looks free in it; therefore each process [looks
//! again](MemoryPolicy::check_allocated) when it has allocated its memory, and releases that if too little is left. Of several processes, the
//! last one to look sees the memory of all.

use super::headroom::{MemoryScope, scopes};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::ring_files::{MemoryPolicy, Reservation};

/// Duration of the cache of the available memory.
const FRESH: Duration = Duration::from_millis(20);
/// Time after a refusal during which requests fail immediately. Memory usually stays full for a while, and an attempt takes time.
const PAUSE: Duration = Duration::from_secs(1);

/// Rings have the largest size up to an eighth of the bound; the size halves for each further such part.
const PARTS: u64 = 32;
const PARTS_OF_FULL_SIZE: u64 = PARTS / 8;

/// The sum of the ring memory of all processes of a session.
pub(crate) trait SharedMemory: fmt::Debug + Send + Sync {
    /// Returns the bytes.
    fn bytes(&self) -> u64;

    /// Adds `more` bytes and subtracts `less`.
    fn change(&self, more: u64, less: u64);

    /// Fails if the sum, which already includes the requested bytes, exceeds its cap.
    fn check(&self, bytes: u64) -> io::Result<()>;

    /// Corrects the sum by counting the files of the living processes, including this one; returns `false` if nothing was counted.
    fn count(&self) -> bool;
}

/// Observes the scopes that limit this process.
struct Observer(Box<dyn Fn() -> Vec<MemoryScope> + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// The memory of a session's rings, or of its statistics, in this process.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    /// The user of the memory: `rings` or `statistics`.
    what: &'static str,
    bound: u64,
    observer: Observer,
    used: AtomicU64,
    /// The sum over the session's processes; `None` if unknown.
    session: Option<Box<dyn SharedMemory>>,
    seen: Mutex<Observations>,
}

/// The last observations.
#[derive(Debug, Default)]
struct Observations {
    /// The scopes, the time of the observation, and the bytes that the rings of the session took then.
    scopes: Option<(Instant, u64, Vec<MemoryScope>)>,
    /// The last refusal, if no request has succeeded since.
    refusal: Option<Refusal>,
}

/// A refused request.
#[derive(Debug)]
struct Refusal {
    when: Instant,
    bytes: usize,
    kind: io::ErrorKind,
    text: String,
}

impl ProcessMemory {
    /// Creates memory of at most `bound` bytes, with files in `dir` if there are any.
    pub(crate) fn new(what: &'static str, bound: u64, dir: Option<Arc<PrivateDir>>) -> Arc<Self> {
        Self::in_session(what, bound, dir, None)
    }

    /// Creates memory that is also counted in this sum.
    pub(crate) fn in_session(
        what: &'static str,
        bound: u64,
        dir: Option<Arc<PrivateDir>>,
        session: Option<Box<dyn SharedMemory>>,
    ) -> Arc<Self> {
        Self::observed(what, bound, session, move || scopes(dir.as_deref()))
    }

    fn observed(
        what: &'static str,
        bound: u64,
        session: Option<Box<dyn SharedMemory>>,
        observe: impl Fn() -> Vec<MemoryScope> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let observer = Observer(Box::new(observe));
        Arc::new(Self { what, bound, observer, used: AtomicU64::new(0), session, seen: Mutex::default() })
    }

    /// Returns the bytes that the rings take.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the reason why the last ring could not be created, if it could not.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.seen().refusal.as_ref().map(|refusal| refusal.text.clone())
    }

    fn seen(&self) -> MutexGuard<'_, Observations> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves `len` bytes.
    pub(crate) fn reserve(self: &Arc<Self>, len: usize) -> io::Result<Reservation> {
        Reservation::new(Arc::clone(self) as _, len)
    }

    /// Returns the bytes that the rings of the session take without the `pending` bytes: at least those of this process.
    fn of_session(&self, pending: u64) -> u64 {
        let sum = self.session.as_ref().map_or(0, |session| session.bytes());
        sum.max(self.used()).saturating_sub(pending)
    }

    fn check_bound(&self, used: u64, bytes: u64) -> io::Result<()> {
        let what = self.what;
        if used.saturating_add(bytes) <= self.bound {
            return Ok(());
        }
        let text = format!(
            "the {what} of this process take {used} bytes, and {bytes} more would exceed its bound of {}; raise the bound \
             (`--memory`, `.memory(bytes)`), or choose smaller or fewer {what}",
            self.bound
        );
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
    }

    /// Fails if `bytes`, which were already added, exceed the session's cap, or the available memory.
    fn check_session(&self, bytes: u64) -> io::Result<()> {
        self.session.as_ref().map_or(Ok(()), |session| session.check(bytes))?;
        let used = self.of_session(bytes);
        match self.tightest(used) {
            Some(scope) if scope.room(used) < bytes => Err(scope.error(used, self.what)),
            _ => Ok(()),
        }
    }

    /// Returns the scope with the least room; `None` if there is no limit. `used` is the number of bytes that the rings of the session
    /// take.
    fn tightest(&self, used: u64) -> Option<MemoryScope> {
        let mut seen = self.seen();
        if seen.scopes.as_ref().is_none_or(|(when, ..)| when.elapsed() >= FRESH) {
            seen.scopes = Some((Instant::now(), used, (self.observer.0)()));
        }
        let (_, before, scopes) = seen.scopes.as_ref()?;
        let taken = used.saturating_sub(*before);
        scopes.iter().map(|scope| scope.after(taken)).min_by_key(|scope| scope.room(used))
    }
}

impl MemoryPolicy for ProcessMemory {
    /// Looks only if too little could be left: if the last observation included none of the session's memory.
    fn check_allocated(&self) -> io::Result<()> {
        let used = self.of_session(0);
        let mut seen = self.seen();
        let is_enough = |scopes: &[MemoryScope]| scopes.iter().all(|scope| scope.after(used).leaves_enough(used));
        if self.session.is_none() || seen.scopes.as_ref().is_some_and(|(_, _, scopes)| is_enough(scopes)) {
            return Ok(());
        }
        let scopes = (self.observer.0)();
        let checked = match scopes.iter().find(|scope| !scope.leaves_enough(used)) {
            Some(scope) => Err(scope.error(used, self.what)),
            None => Ok(()),
        };
        seen.scopes = Some((Instant::now(), used, scopes));
        checked
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.session.iter().for_each(|session| session.change(bytes, 0));
        let checked = self.check_bound(used, bytes).and_then(|()| {
            self.check_session(bytes).or_else(|error| {
                let counted = self.session.as_ref().is_some_and(|session| session.count());
                if counted { self.check_session(bytes) } else { Err(error) }
            })
        });
        checked.inspect_err(|_| self.give_back(bytes))
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.session.iter().for_each(|session| session.change(0, bytes));
    }

    fn note(&self, bytes: usize, refusal: Option<&io::Error>) {
        self.seen().refusal = refusal.map(|error| {
            let (kind, text) = (error.kind(), error.to_string());
            Refusal { when: Instant::now(), bytes, kind, text }
        });
    }

    fn recent_refusal(&self, bytes: usize) -> Option<io::Error> {
        let seen = self.seen();
        let is_recent = |refusal: &&Refusal| refusal.when.elapsed() < PAUSE && refusal.bytes <= bytes;
        let recent = seen.refusal.as_ref().filter(is_recent);
        recent.map(|refusal| io::Error::new(refusal.kind, refusal.text.clone()))
    }

    /// Chooses the size of the next ring from `sizes`: the more memory the rings of this process or session take, the smaller.
    fn choose_size(&self, sizes: &[usize]) -> usize {
        let (used, of_session) = (self.used(), self.of_session(0));
        let scope = self.tightest(of_session);
        let part = scope.as_ref().map_or(0, |scope| scope.part(of_session));
        let room = scope.map_or(u64::MAX, |scope| scope.room(of_session));
        let step =
            |used: u64, most: u64| (used.saturating_mul(PARTS) / most.max(1)).saturating_sub(PARTS_OF_FULL_SIZE - 1);
        let step = step(used, self.bound).max(step(part, part.saturating_add(room)));
        let first = usize::try_from(step).unwrap_or(usize::MAX).min(sizes.len() - 1);
        let room = room.min(self.bound.saturating_sub(used));
        let fits = |size: &&usize| **size as u64 <= room;
        *sizes[first..].iter().find(fits).unwrap_or(&sizes[sizes.len() - 1])
    }

    /// At most a quarter of the bound, so that new threads find rings.
    fn overflow_limit(&self, configured: usize) -> usize {
        configured.min(usize::try_from(self.bound / 4).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;
    const SIZES: [usize; 5] = [1044 * KIB, 520 * KIB, 264 * KIB, 136 * KIB, 72 * KIB];

    /// Creates rings until no room is left for another one.
    fn fill(bound: u64) -> Vec<usize> {
        let memory = ProcessMemory::observed("rings", bound, None, Vec::new);
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

    /// The sum of a session, without a file.
    #[derive(Debug, Default)]
    struct Sum(AtomicU64);

    impl SharedMemory for Arc<Sum> {
        fn bytes(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn change(&self, more: u64, less: u64) {
            self.0.fetch_add(more.wrapping_sub(less), Ordering::Relaxed);
        }

        fn check(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn count(&self) -> bool {
            false
        }
    }

    /// All find the same memory free, before the first one has taken any.
    #[test]
    fn a_thousand_processes_at_once_leave_a_quarter_free_and_all_have_rings() {
        const MIB: u64 = 1 << 20;
        let sum = Arc::new(Sum::default());
        let mut taken = Vec::new();
        for _ in 0..1000 {
            let memory = ProcessMemory::observed("rings", 128 * MIB, Some(Box::new(Arc::clone(&sum))), Vec::new);
            let scopes = vec![MemoryScope::with(4096 * MIB, 3072 * MIB)];
            memory.seen().scopes = Some((Instant::now() + Duration::from_secs(3600), 0, scopes));
            for _ in 0..5 {
                taken.push(memory.reserve(memory.choose_size(&SIZES)).expect("there is room"));
            }
        }
        assert!(sum.bytes() <= 3072 * MIB * 3 / 4, "{}", sum.bytes());
        drop(taken);
        assert_eq!(sum.bytes(), 0);
    }

    /// All reserve memory before any of them allocates it, so each of them finds room for its ring.
    #[test]
    fn processes_that_allocate_at_the_same_time_leave_a_quarter_free() {
        const LIMIT: u64 = 16 << 20;
        let (free, taken, size) = (LIMIT * 3 / 4, 8900 << 10, SIZES[4]);
        let available = Arc::new(AtomicU64::new(free - taken));
        let sum = Arc::new(Sum(AtomicU64::new(taken)));
        let process = |_| {
            let available = Arc::clone(&available);
            ProcessMemory::observed("rings", LIMIT, Some(Box::new(Arc::clone(&sum))), move || {
                vec![MemoryScope::with(LIMIT, available.load(Ordering::Relaxed))]
            })
        };
        let processes: Vec<_> = (0..12).map(process).collect();
        let reserved: Vec<_> =
            processes.iter().map(|memory| memory.reserve(size).expect("there seems to be room")).collect();
        let mut kept = Vec::new();
        for (memory, reservation) in processes.iter().zip(reserved) {
            available.fetch_sub(size as u64, Ordering::Relaxed);
            match memory.check_allocated() {
                Ok(()) => kept.push(reservation),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
                    available.fetch_add(size as u64, Ordering::Relaxed);
                }
            }
        }
        let available = available.load(Ordering::Relaxed);
        assert!(!kept.is_empty() && available >= free / 4, "{} kept, {available} bytes left", kept.len());
        assert_eq!(sum.bytes(), taken + (kept.len() * size) as u64);
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
        let error = memory.reserve(101).expect_err("it is too much");
        memory.note(101, Some(&error));
        let error = error.to_string();
        assert!(error.contains("bound of 100") && error.contains("--memory"), "{error}");
        assert_eq!(memory.refusal(), Some(error));
        assert!(memory.recent_refusal(101).is_some());
        assert!(memory.recent_refusal(100).is_none(), "less may be granted");
        assert!(memory.reserve(1).is_ok());
        memory.note(1, None);
        assert!(memory.recent_refusal(101).is_none() && memory.refusal().is_none());
    }
}
