//! Wakes the consumer of a channel when it is needed: on Linux a futex on a word of shared memory.
//!
//! The owner of a ring calls [`WakeWord::wake`] when it has closed a packet and at least half of its ring waits to be drained. A thread also calls it
//! when it takes one of the last spare rings, or finds none. If the consumer sleeps, this is one system call, `futex(FUTEX_WAKE)`;
//! otherwise it is a fence and a load. It is the only system call that a site makes, at most one for each closed packet and each spare ring,
//! except where an event waits.
//! It never blocks, and it is safe in signal handlers. [`Channel::no_wake`](super::Channel::no_wake) switches it off.
//!
//! The futex is not private to the process, because the consumer may be in another one; see [`MemorySource::wake_memory`].
//!
//! [`MemorySource::wake_memory`]: super::MemorySource::wake_memory

use super::memory::RingMemory;
use super::sleep_state::SleepState;
use std::fmt;
use std::time::Duration;

/// A consumer's sleep word. It serves all channels of a consumer, and one consumer at a time.
pub struct WakeWord(Place);

enum Place {
    Own(SleepState),
    /// In memory that is shared with other processes.
    Shared(Box<dyn RingMemory>),
}

impl Default for WakeWord {
    /// A word private to this process.
    fn default() -> Self {
        Self(Place::Own(SleepState::new()))
    }
}

impl fmt::Debug for WakeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WakeWord").field(self.state()).finish()
    }
}

impl WakeWord {
    /// The first word of `memory`; `None` if the memory is too small.
    pub fn shared(memory: Box<dyn RingMemory>) -> Option<Self> {
        (memory.len() >= size_of::<SleepState>()).then_some(Self(Place::Shared(memory)))
    }

    fn state(&self) -> &SleepState {
        match &self.0 {
            Place::Own(state) => state,
            // SAFETY: `shared` has checked the length; ring memory is aligned and lives as long as its owner. All byte values are valid.
            Place::Shared(memory) => unsafe { memory.base().cast().as_ref() },
        }
    }

    /// Wakes the consumer if it sleeps. Must be called after storing the data that the consumer is to find.
    pub fn wake(&self) {
        let state = self.state();
        if state.must_wake() {
            futex::wake(state);
        }
    }

    /// Announces that the consumer will [sleep](Self::sleep), unless its check of the rings, which must come in between, finds work.
    pub fn announce(&self) {
        self.state().announce();
    }

    /// Withdraws the announcement.
    pub fn awake(&self) {
        self.state().awake();
    }

    /// Sleeps for up to `time`. Returns `true` if [`wake`](Self::wake) is called, or was called since the announcement, and `false` otherwise. A
    /// signal may end the sleep early.
    pub fn sleep(&self, time: Duration) -> bool {
        let state = self.state();
        let slept = futex::sleep(state, time);
        state.awake();
        slept
    }
}

#[cfg(linux_kernel)]
mod futex {
    use super::SleepState;
    use crate::channel::sleep_state::ASLEEP;
    use crate::errno::keeping_errno;
    use std::ptr::null;
    use std::time::Duration;

    pub(super) fn wake(state: &SleepState) {
        keeping_errno(|| {
            // SAFETY: the kernel uses the address of the word as a key and accesses no memory there.
            unsafe { libc::syscall(libc::SYS_futex, std::ptr::from_ref(state), libc::FUTEX_WAKE, 1) };
        });
    }

    pub(super) fn sleep(state: &SleepState, time: Duration) -> bool {
        let timeout = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: the kernel reads the word, an atomic that lives as long as `state`, and the timeout.
        let result = unsafe {
            let (word, timeout) = (std::ptr::from_ref(state), &raw const timeout);
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, ASLEEP, timeout, null::<u32>(), 0)
        };
        let was_woken = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
        result == 0 || was_woken()
    }
}

/// Without futexes, a sleeping consumer compares its word at intervals. A condition variable would not do: a thread may wake the consumer in a
/// signal handler.
#[cfg(not(linux_kernel))]
mod futex {
    use super::SleepState;
    use std::time::{Duration, Instant};

    const INTERVAL: Duration = Duration::from_millis(10);

    /// Does nothing: the word has changed.
    pub(super) const fn wake(_: &SleepState) {}

    pub(super) fn sleep(state: &SleepState, time: Duration) -> bool {
        let began = Instant::now();
        while state.is_asleep() {
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(INTERVAL));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_consumer_that_sleeps_is_woken() {
        let word = Arc::new(WakeWord::default());
        word.announce();
        let waker = Arc::clone(&word);
        let thread = thread::spawn(move || waker.wake());
        assert!(word.sleep(LONG), "whether it was asleep already or not");
        thread.join().expect("no panic");
    }

    #[test]
    fn a_wake_up_before_the_sleep_is_not_lost() {
        let word = WakeWord::default();
        word.announce();
        word.wake();
        assert!(word.sleep(LONG));
        word.announce();
        assert!(!word.sleep(Duration::from_millis(1)), "nothing happened since the announcement");
    }

    #[test]
    #[cfg(linux_kernel)]
    fn waking_leaves_errno_alone() {
        let word = WakeWord::default();
        // SAFETY: the thread's own `errno`.
        let errno = unsafe { libc::__errno_location() };
        word.announce();
        // SAFETY: as above.
        let after = unsafe {
            *errno = 17;
            word.wake();
            *errno
        };
        assert_eq!(after, 17);
    }
}
