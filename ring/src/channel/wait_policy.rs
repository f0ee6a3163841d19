//! The bounded wait: an event that finds its ring full waits for the drain, for as long as the channel allows.
//!
//! The one place where a site waits, chosen by name ([`Channel::wait`](super::Channel::wait)). Nobody waits who could wait for
//! himself or in vain:
//!
//! * where nobody drains the channel ([`OpenChannel::register_consumer`](super::OpenChannel::register_consumer) says that somebody does), or who does waits
//!   for a grace period, and with it for those who wait;
//! * inside another event: a probe, or a signal handler that interrupts one;
//! * where signals are blocked, as one is in its own handler: nothing tells a handler from a thread that blocks signals, so such
//!   threads do not wait at all;
//! * again, when the last wait was in vain and nothing was drained since: a sink that blocks costs a thread one wait, not one for
//!   each event.
//!
//! While it waits, the thread has the buffer's gate: its handlers write to the nested buffer, and a flusher leaves the packet to it. It
//! stays inside its section, too, so that a grace period lasts as long as the wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many drain a channel. What it says is a hint, so that Relaxed is enough: who stops draining leaves waits to their bound.
#[derive(Debug, Default)]
pub(super) struct ConsumerPresence {
    attending: AtomicUsize,
    /// So many of them wait for a grace period.
    away: AtomicUsize,
}

/// As long as it is there, somebody drains the channel regularly.
#[derive(Debug)]
#[must_use = "dropping it says that nobody drains the channel"]
pub struct ConsumerGuard(Arc<ConsumerPresence>);

impl ConsumerPresence {
    pub(super) fn begin(self: &Arc<Self>) -> ConsumerGuard {
        self.attending.fetch_add(1, Ordering::Relaxed);
        ConsumerGuard(Arc::clone(self))
    }

    /// Runs what may wait for a grace period: who waits for the drain inside a section gives up meanwhile.
    pub(super) fn away<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.away.fetch_add(1, Ordering::Relaxed);
        let result = wait();
        self.away.fetch_sub(1, Ordering::Relaxed);
        result
    }

    fn is_attended(&self) -> bool {
        self.attending.load(Ordering::Relaxed) > self.away.load(Ordering::Relaxed)
    }
}

impl Drop for ConsumerGuard {
    fn drop(&mut self) {
        self.0.attending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long an owner waits for room.
#[derive(Debug)]
pub(super) struct WaitPolicy {
    most: Duration,
    consumers: Arc<ConsumerPresence>,
    /// How much had been drained when a wait was in vain, and one more; 0: none was. The owner's.
    in_vain_at: AtomicU64,
}

/// The first pause between two looks, and the longest. The drain does not wake anybody.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

impl WaitPolicy {
    pub(super) fn new(most: Duration, consumers: &Arc<ConsumerPresence>) -> Self {
        Self { most, consumers: Arc::clone(consumers), in_vain_at: AtomicU64::new(0) }
    }

    /// Waits until `drained`, which only grows, is at least `enough`: for how long, and whether it is now.
    pub(super) fn wait(&self, enough: u64, drained: impl Fn() -> u64) -> (Duration, bool) {
        let in_vain = self.in_vain_at.load(Ordering::Relaxed) == drained() + 1;
        if in_vain || !self.consumers.is_attended() || !crate::thread::is_outermost() || signals_are_blocked() {
            return (Duration::ZERO, drained() >= enough);
        }
        self.wait_for_drain(enough, drained)
    }

    fn wait_for_drain(&self, enough: u64, drained: impl Fn() -> u64) -> (Duration, bool) {
        let begin = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            if drained() >= enough {
                return (begin.elapsed(), true);
            }
            let waited = begin.elapsed();
            if waited >= self.most || !self.consumers.is_attended() {
                self.in_vain_at.store(drained() + 1, Ordering::Relaxed);
                return (waited, false);
            }
            thread::sleep(pause.min(self.most.saturating_sub(waited)));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Whether the calling thread blocks any signal.
#[cfg(posix)]
fn signals_are_blocked() -> bool {
    let mut blocked = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: with no new set the call only writes the present one to the place, which is valid.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), blocked.as_mut_ptr()) } != 0 {
        return true;
    }
    // SAFETY: all zero is an empty set, and the call has written over it.
    let blocked = unsafe { blocked.assume_init() };
    // SAFETY: a set that is initialised; a number that is no signal's is refused, and not a member.
    (1..=64).any(|signal| unsafe { libc::sigismember(&raw const blocked, signal) } == 1)
}

#[cfg(not(posix))]
fn signals_are_blocked() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(most: Duration) -> (WaitPolicy, Arc<ConsumerPresence>) {
        let consumers = Arc::new(ConsumerPresence::default());
        (WaitPolicy::new(most, &consumers), consumers)
    }

    #[test]
    fn nobody_waits_where_nobody_drains() {
        let (policy, _) = policy(Duration::MAX);
        assert_eq!(policy.wait(1, || 0), (Duration::ZERO, false));
    }

    #[test]
    fn a_wait_ends_when_there_is_room() {
        let (policy, consumers) = policy(Duration::MAX);
        let _attending = consumers.begin();
        let looks = AtomicU64::new(0);
        let (waited, room) = policy.wait(5, || looks.fetch_add(1, Ordering::Relaxed));
        assert!(room && waited > Duration::ZERO);
    }

    #[test]
    fn a_wait_in_vain_is_not_repeated_before_something_was_drained() {
        let most = Duration::from_millis(1);
        let (policy, consumers) = policy(most);
        let attending = consumers.begin();
        let (waited, room) = policy.wait(8, || 3);
        assert!(!room && waited >= most);
        assert_eq!(policy.wait(8, || 3), (Duration::ZERO, false));
        assert!(policy.wait(8, || 4).0 >= most);
        drop(attending);
        assert_eq!(policy.wait(8, || 5), (Duration::ZERO, false));
    }

    #[cfg(posix)]
    #[test]
    fn who_may_be_a_handler_does_not_wait() {
        let (policy, consumers) = policy(Duration::MAX);
        let _attending = consumers.begin();
        thread::spawn(move || {
            // SAFETY: a set that is emptied before it is used; blocks a signal for this thread alone.
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
