//! The bounded wait: an event that finds its ring full waits for the consumer, up to the limit of the channel. An event of a thread without a ring
//! waits for the thread that supplies rings.
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
//! A thread does not wait for a ring either if the supplier cannot create one, or if another thread has waited in vain since the supplier's last round.
//!
//! The second and third of these, and grace periods, do not concern a consumer in another process
//! ([`register_remote_consumer`](super::OpenChannel::register_remote_consumer)): it makes room whatever this process does. The supplier of rings is
//! always a thread of this process.
//!
//! The supplier may need a lock whose owner waits for a grace period, or wait for one itself, which cannot elapse while a thread waits inside its section.
//! So a thread gives up waiting for a ring when some thread has been waiting for a grace period for 50 ms. Where the supplier does not depend on the
//! grace period, it has a ring much sooner.
//!
//! A waiting thread keeps the buffer marked as being written (see [`flush_handshake`](super::flush_handshake)): its signal handlers write to
//! the nested buffer, and the flusher leaves the packet to it. It also stays inside its section, so that a grace period lasts as long as the
//! wait.
//!
//! # What the two sides share
//!
//! The consumer stores the number of released packets, and the thread loads it, as for every packet that is opened (R1, and R3 if the consumer is in
//! another process). There is no other word: the thread looks at intervals of 20 µs to 1 ms, and the consumer does not wake it. So the consumer does
//! nothing for threads that wait, however many there are; a consumer that is killed, stopped or hostile leaves a thread no way to wait longer than
//! its limit; and rings need no field for it, so that every consumer of rings serves threads that wait. The consumer is awake: the thread woke it
//! before its ring was full (W1, W2), and the consumer's own interval is at most a quarter of the wait.

use super::consumer_presence::ConsumerPresence;
use crate::errno::keeping_errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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
        let timed_out_at = self.timed_out_at.load(Ordering::Relaxed);
        if timed_out_at > 0 && timed_out_at != drained() + 1 {
            self.timed_out_at.store(0, Ordering::Relaxed);
            self.consumers.progress();
        }
        if self.timed_out_at.load(Ordering::Relaxed) > 0 || self.consumers.is_stalled() || !self.may_wait() {
            return (Duration::ZERO, drained() >= enough);
        }
        keeping_errno(|| self.wait_for_consumer(enough, drained))
    }

    /// Returns whether a consumer can make room while the calling thread waits.
    fn may_wait(&self) -> bool {
        let has_local = || self.consumers.is_present() && crate::thread::is_outermost() && !signals_are_blocked();
        self.consumers.has_remote() || has_local()
    }

    fn wait_for_consumer(&self, enough: u64, drained: impl Fn() -> u64) -> (Duration, bool) {
        let (waited, end) = poll(self.max_wait, || {
            if drained() >= enough {
                return Some(End::Ready);
            }
            (!self.consumers.is_present()).then_some(End::GivenUp)
        });
        if end == End::TimedOut {
            self.timed_out_at.store(drained() + 1, Ordering::Relaxed);
            self.consumers.stall();
        }
        (waited, end == End::Ready)
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Ready,
    GivenUp,
    TimedOut,
}

/// Calls `look` at growing intervals until it returns the end, for up to `max_wait`. Returns the duration as well.
fn poll(max_wait: Duration, mut look: impl FnMut() -> Option<End>) -> (Duration, End) {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    // Not a wait, if there is nothing to wait for.
    let mut waited = Duration::ZERO;
    loop {
        if let Some(end) = look() {
            return (waited, end);
        }
        waited = begin.elapsed();
        if waited >= max_wait {
            return (waited, End::TimedOut);
        }
        thread::sleep(pause.min(max_wait.saturating_sub(waited)));
        pause = (pause * 2).min(LONGEST_PAUSE);
        waited = begin.elapsed();
    }
}

/// The time for which a grace period may be awaited while a thread waits for a ring.
const LONGEST_GRACE_PERIOD: Duration = Duration::from_millis(50);

/// Waits for the supplier of rings, like [`poll`], if the calling thread may wait for another thread of this process.
pub(super) fn wait_for_supplier(max_wait: Duration, mut look: impl FnMut() -> Option<End>) -> (Duration, End) {
    if !crate::thread::is_outermost() || signals_are_blocked() {
        return (Duration::ZERO, End::GivenUp);
    }
    let mut awaited_since = None;
    let mut is_blocking = || {
        if !crate::thread::is_grace_period_awaited() {
            awaited_since = None;
            return None;
        }
        let since = *awaited_since.get_or_insert_with(Instant::now);
        (since.elapsed() >= LONGEST_GRACE_PERIOD).then_some(End::GivenUp)
    };
    keeping_errno(|| poll(max_wait, || look().or_else(&mut is_blocking)))
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
        let _consumer = consumers.register(false);
        let looks = AtomicU64::new(0);
        let (waited, room) = policy.wait(5, || looks.fetch_add(1, Ordering::Relaxed));
        assert!(room && waited > Duration::ZERO);
    }

    #[test]
    fn a_wait_that_timed_out_is_not_repeated_before_something_was_drained() {
        let max_wait = Duration::from_millis(1);
        let (policy, consumers) = policy(max_wait);
        let consumer = consumers.register(false);
        let (waited, room) = policy.wait(8, || 3);
        assert!(!room && waited >= max_wait);
        assert_eq!(policy.wait(8, || 3), (Duration::ZERO, false));
        assert!(policy.wait(8, || 4).0 >= max_wait);
        drop(consumer);
        assert_eq!(policy.wait(8, || 5), (Duration::ZERO, false));
    }

    /// Threads that find their rings full later, or start later, do not wait one after the other.
    #[test]
    fn a_wait_that_timed_out_is_the_last_one_of_all_rings_until_something_was_drained() {
        let max_wait = Duration::from_millis(1);
        let (first, consumers) = policy(max_wait);
        let second = WaitPolicy::new(max_wait, &consumers);
        let _consumer = consumers.register(true);
        assert!(first.wait(8, || 3).0 >= max_wait);
        assert_eq!(second.wait(8, || 3), (Duration::ZERO, false));
        // Seen by the thread of the first ring.
        assert!(first.wait(8, || 4).0 >= max_wait);
        consumers.progress();
        assert!(second.wait(8, || 3).0 >= max_wait);
    }

    #[test]
    fn a_thread_stops_waiting_for_a_remote_consumer_that_ends() {
        let (policy, consumers) = policy(Duration::MAX);
        let _consumer = consumers.register(true);
        let looks = Arc::new(AtomicU64::new(0));
        let looks_of_thread = Arc::clone(&looks);
        let waits = thread::spawn(move || {
            policy.wait(u64::MAX, || {
                looks_of_thread.fetch_add(1, Ordering::Relaxed);
                0
            })
        });
        while looks.load(Ordering::Relaxed) < 5 {
            thread::yield_now();
        }
        assert!(!waits.is_finished());
        consumers.end_remote();
        let (waited, has_room) = waits.join().expect("no panic");
        assert!(waited > Duration::ZERO && !has_room);
    }

    #[cfg(posix)]
    #[test]
    fn a_thread_that_blocks_signals_waits_for_another_process_alone() {
        let (policy, consumers) = policy(Duration::MAX);
        let _consumer = consumers.register(false);
        thread::spawn(move || {
            // SAFETY: the set is emptied before it is used; only this thread blocks the signal.
            unsafe {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, libc::SIGUSR1);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            }
            assert_eq!(policy.wait(1, || 0), (Duration::ZERO, false));
            let _remote = consumers.register(true);
            let looks = AtomicU64::new(0);
            assert!(policy.wait(5, || looks.fetch_add(1, Ordering::Relaxed)).1);
        })
        .join()
        .expect("no panic");
    }
}
