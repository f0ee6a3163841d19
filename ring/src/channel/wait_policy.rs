//! The bounded wait: an event that finds its ring full waits for the consumer, up to the limit of the channel.
//!
//! A site waits only here, and only if its channel requests it by name ([`Channel::wait`](super::Channel::wait)). A thread does not
//! wait:
//!
//! * without a consumer ([`OpenChannel::register_consumer`](super::OpenChannel::register_consumer) registers one), or while every consumer
//!   itself waits for a grace period, which cannot elapse before this thread leaves its section;
//! * inside another event, that is, in a probe or in a signal handler that has interrupted an event: it would wait for itself;
//! * while it blocks signals, as in a signal handler: a handler cannot be distinguished from a thread that blocks signals;
//! * after a wait that timed out, until something has been drained: a blocking sink costs a thread one wait, not one per event.
//!
//! A waiting thread keeps the buffer marked as being written (see [`flush_handshake`](super::flush_handshake)): its signal handlers write to
//! the nested buffer, and the flusher leaves the packet to it. It also stays inside its section, so that a grace period lasts as long as the
//! wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The consumers of a channel. A hint, so Relaxed suffices: a wait that has missed the end of a consumer still times out.
#[derive(Debug, Default)]
pub(super) struct ConsumerPresence {
    registered: AtomicUsize,
    /// Number of consumers that wait for a grace period.
    waiting: AtomicUsize,
}

/// A registered consumer, which must drain the channel regularly until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the registration: events no longer wait for this consumer"]
pub struct ConsumerGuard(Arc<ConsumerPresence>);

impl ConsumerPresence {
    pub(super) fn register(self: &Arc<Self>) -> ConsumerGuard {
        self.registered.fetch_add(1, Ordering::Relaxed);
        ConsumerGuard(Arc::clone(self))
    }

    /// Runs `wait`, which may wait for a grace period. Meanwhile, threads that wait for the consumer inside a section give up.
    pub(super) fn while_waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Returns whether a consumer can drain now.
    fn is_present(&self) -> bool {
        self.registered.load(Ordering::Relaxed) > self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for ConsumerGuard {
    fn drop(&mut self) {
        self.0.registered.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The waiting of a ring's owner for a free packet.
#[derive(Debug)]
pub(super) struct WaitPolicy {
    max_wait: Duration,
    consumers: Arc<ConsumerPresence>,
    /// The number of drained packets at the last wait that timed out, plus one; 0 if none has. Stored by the owner only.
    timed_out_at: AtomicU64,
}

/// The first and the longest pause between two checks. The consumer does not wake the waiting thread.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

impl WaitPolicy {
    pub(super) fn new(max_wait: Duration, consumers: &Arc<ConsumerPresence>) -> Self {
        Self { max_wait, consumers: Arc::clone(consumers), timed_out_at: AtomicU64::new(0) }
    }

    /// Waits until `drained`, which only grows, has reached `enough`. Returns the duration of the wait, and whether it was reached.
    pub(super) fn wait(&self, enough: u64, drained: impl Fn() -> u64) -> (Duration, bool) {
        let has_timed_out = self.timed_out_at.load(Ordering::Relaxed) == drained() + 1;
        let may_wait =
            !has_timed_out && self.consumers.is_present() && crate::thread::is_outermost() && !signals_are_blocked();
        if !may_wait {
            return (Duration::ZERO, drained() >= enough);
        }
        self.wait_for_consumer(enough, drained)
    }

    fn wait_for_consumer(&self, enough: u64, drained: impl Fn() -> u64) -> (Duration, bool) {
        let begin = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            if drained() >= enough {
                return (begin.elapsed(), true);
            }
            let waited = begin.elapsed();
            if waited >= self.max_wait || !self.consumers.is_present() {
                self.timed_out_at.store(drained() + 1, Ordering::Relaxed);
                return (waited, false);
            }
            thread::sleep(pause.min(self.max_wait.saturating_sub(waited)));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Returns whether the calling thread blocks any signal.
#[cfg(posix)]
fn signals_are_blocked() -> bool {
    let mut blocked = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: without a new set the call only stores the current one in `blocked`, which is valid for it.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), blocked.as_mut_ptr()) } != 0 {
        return true;
    }
    // SAFETY: zeroed, which is a valid set, and overwritten by the call.
    let blocked = unsafe { blocked.assume_init() };
    // SAFETY: the set is initialised; the call returns -1 for a number that is not a signal.
    (1..=64).any(|signal| unsafe { libc::sigismember(&raw const blocked, signal) } == 1)
}

#[cfg(not(posix))]
fn signals_are_blocked() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(max_wait: Duration) -> (WaitPolicy, Arc<ConsumerPresence>) {
        let consumers = Arc::new(ConsumerPresence::default());
        (WaitPolicy::new(max_wait, &consumers), consumers)
    }

    #[test]
    fn an_event_does_not_wait_without_a_consumer() {
        let (policy, _) = policy(Duration::MAX);
        assert_eq!(policy.wait(1, || 0), (Duration::ZERO, false));
    }

    #[test]
    fn a_wait_ends_when_there_is_room() {
        let (policy, consumers) = policy(Duration::MAX);
        let _consumer = consumers.register();
        let looks = AtomicU64::new(0);
        let (waited, room) = policy.wait(5, || looks.fetch_add(1, Ordering::Relaxed));
        assert!(room && waited > Duration::ZERO);
    }

    #[test]
    fn a_wait_that_timed_out_is_not_repeated_before_something_was_drained() {
        let max_wait = Duration::from_millis(1);
        let (policy, consumers) = policy(max_wait);
        let consumer = consumers.register();
        let (waited, room) = policy.wait(8, || 3);
        assert!(!room && waited >= max_wait);
        assert_eq!(policy.wait(8, || 3), (Duration::ZERO, false));
        assert!(policy.wait(8, || 4).0 >= max_wait);
        drop(consumer);
        assert_eq!(policy.wait(8, || 5), (Duration::ZERO, false));
    }

    #[cfg(posix)]
    #[test]
    fn a_thread_that_blocks_signals_does_not_wait() {
        let (policy, consumers) = policy(Duration::MAX);
        let _consumer = consumers.register();
        thread::spawn(move || {
            // SAFETY: the set is emptied before it is used; only this thread blocks the signal.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, libc::SIGUSR1);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
            assert_eq!(policy.wait(1, || 0), (Duration::ZERO, false));
        })
        .join()
        .expect("no panic");
    }
}
