//! A lock that costs its holder one atomic operation: it is released by a store.
//!
//! A lock whose waiters sleep in the kernel has to find out on release whether there are any, by a second atomic operation, which costs as much as
//! the entry that is traced. Here whoever waits looks again by itself: one waiter at a time, ever less often, up to a thousand
//! times a second; the others sleep behind it. So a waiter learns up to a millisecond late that a lock was released which was held for long.

use parking_lot::Mutex;
use spin::mutex::{SpinMutex, SpinMutexGuard};
use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

/// Guards a value.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    value: SpinMutex<T>,
    /// Held by the one that looks again and again.
    turn: Mutex<()>,
}

/// What a holder has. Dropping it releases the lock.
pub(crate) type Guard<'a, T> = SpinMutexGuard<'a, T>;

/// How often a waiter looks before it lets others run: for as long as an entry or a few are copied.
const SPINS: u32 = 64;
/// The first pause of a waiter, for as long as a small buffer is written; it doubles.
const SHORTEST: Duration = Duration::from_micros(10);
/// The longest.
const LONGEST: Duration = Duration::from_millis(1);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value: SpinMutex::new(value), turn: Mutex::new(()) }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        match self.value.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Does not wait.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.value.try_lock()
    }

    /// Sleeps in between, whatever the priorities of threads are, so that the holder comes to its end.
    #[cold]
    fn wait(&self) -> Guard<'_, T> {
        let _turn = self.turn.lock();
        for _ in 0..SPINS {
            if let Some(guard) = self.value.try_lock() {
                return guard;
            }
            spin_loop();
        }
        let mut pause = SHORTEST;
        loop {
            thread::sleep(pause);
            if let Some(guard) = self.value.try_lock() {
                return guard;
            }
            pause = (pause * 2).min(LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_each_comes_to_its_turn() {
        let lock = Lock::new((0u32, false));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..2_000 {
                        let mut value = lock.lock();
                        assert!(!std::mem::replace(&mut value.1, true), "somebody else holds it");
                        if round % 100 == 0 {
                            thread::yield_now();
                        }
                        value.0 += 1;
                        value.1 = false;
                    }
                });
            }
        });
        assert_eq!(lock.lock().0, 8_000);
    }

    #[test]
    fn a_waiter_outlasts_a_long_holder() {
        let lock = Lock::new(1);
        let held = lock.lock();
        thread::scope(|scope| {
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| *lock.lock() += 1)).collect();
            thread::sleep(10 * LONGEST);
            assert_eq!(*held, 1);
            assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
            drop(held);
        });
        assert_eq!(*lock.lock(), 4);
    }
}
