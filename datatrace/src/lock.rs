//! A lock that costs its holder one atomic operation: a store releases it.
//!
//! If waiters slept in the kernel, the release would have to check for them with a second atomic operation, which costs as much as tracing an entry.
//! Here one waiter at a time polls the lock, at intervals that grow to a millisecond, and the others sleep behind it. After a long
//! hold, a waiter may therefore continue up to a millisecond late.

use parking_lot::Mutex;
use spin::mutex::{SpinMutex, SpinMutexGuard};
use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

/// A lock around a value.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    value: SpinMutex<T>,
    /// Held by the polling waiter.
    poller: Mutex<()>,
}

/// Holds the lock until it is dropped.
pub(crate) type Guard<'a, T> = SpinMutexGuard<'a, T>;

/// Number of polls before a waiter sleeps. They take as long as copying a few entries.
const SPINS: u32 = 64;
/// The first pause of a waiter: the time in which a small buffer is written. Each pause is twice as long as the previous one.
const SHORTEST: Duration = Duration::from_micros(10);
/// The longest pause.
const LONGEST: Duration = Duration::from_millis(1);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { value: SpinMutex::new(value), poller: Mutex::new(()) }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        match self.value.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.value.try_lock()
    }

    /// Polls the lock, and sleeps between polls, so that the holder can finish regardless of thread priorities.
    #[cold]
    fn wait(&self) -> Guard<'_, T> {
        let _poller = self.poller.lock();
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
    fn the_lock_is_exclusive_and_starves_no_waiter() {
        let lock = Lock::new((0u32, false));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..2_000 {
                        let mut value = lock.lock();
                        assert!(!std::mem::replace(&mut value.1, true), "another thread holds it");
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
