//! A mutex of a background thread that takes it again and again, and of other threads that need it now and then.
//!
//! A thread that unlocks a [`Mutex`] and locks it again at once is faster than those that wait, so that they could wait for as long as its rounds
//! follow each other without a pause. Before a round, the background thread therefore leaves the mutex to a thread that waits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bounds of the pause between attempts to lock.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(1);
/// How long the background thread leaves the mutex to a waiting thread: a few of those pauses.
const YIELD: Duration = Duration::from_millis(5);

/// The mutex. Poisoning is ignored: the next round repeats what a panic interrupted.
#[derive(Debug, Default)]
pub struct YieldingLock<T> {
    value: Mutex<T>,
    /// How many threads wait. Relaxed: a stale value at worst costs one more wait, or a slightly longer one.
    waiting: AtomicU32,
}

impl<T> YieldingLock<T> {
    /// A mutex over this value.
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), waiting: AtomicU32::new(0) }
    }

    /// For the background thread, before a round.
    pub fn lock_for_round(&self) -> MutexGuard<'_, T> {
        let begun = Instant::now();
        while self.waiting.load(Ordering::Relaxed) > 0 && begun.elapsed() < YIELD {
            sleep(SHORTEST);
        }
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits without limit. The background thread may call it between its rounds, too.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.as_waiting(|| self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None` if it is not free in time; one attempt, if there is none.
    pub fn lock_within(&self, timeout: Duration) -> Option<MutexGuard<'_, T>> {
        self.as_waiting(|| {
            let (begun, mut pause) = (Instant::now(), SHORTEST);
            loop {
                match self.value.try_lock() {
                    Ok(value) => return Some(value),
                    Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                    Err(TryLockError::WouldBlock) if begun.elapsed() >= timeout => return None,
                    Err(TryLockError::WouldBlock) => sleep(pause),
                }
                pause = (pause * 2).min(LONGEST);
            }
        })
    }

    fn as_waiting<R>(&self, lock: impl FnOnce() -> R) -> R {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let locked = lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        locked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Rounds that follow each other without a pause, each longer than the time in which a waiting thread could be woken, with a further access of
    /// the background thread between them.
    #[test]
    fn a_thread_that_waits_gets_its_turn() {
        const TURNS: usize = 20;
        let lock = YieldingLock::new(0_u64);
        let is_done = AtomicBool::new(false);
        let (begun, rounds) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let mut number = lock.lock_for_round();
                    *number += 1;
                    let _ = begun.send(*number);
                    sleep(Duration::from_millis(2));
                    drop(number);
                    assert!(*lock.lock() > 0);
                }
            });
            let turn = || {
                // While a round is going on.
                let last = rounds.try_iter().last();
                let during = rounds.recv().ok().max(last).expect("a round");
                *lock.lock() - during
            };
            // Without yielding, a round or more comes before nearly each turn. On a busy machine the thread may begin to wait late.
            let rounds_before = || (0..TURNS).map(|_| turn()).sum::<u64>();
            let fewest = (0..10).map(|_| rounds_before()).find(|rounds| *rounds <= TURNS as u64 / 4);
            is_done.store(true, Ordering::Relaxed);
            assert!(fewest.is_some(), "rounds come before the turns of a thread that waits");
        });
    }
}
