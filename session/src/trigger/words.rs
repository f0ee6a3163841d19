//! The words on which the threads of triggers sleep.
//!
//! They are static, because signal handlers wake all of them and cannot determine which session has ended. A session takes one while its
//! thread runs; waking a word without a sleeping thread has no effect.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tracepoint_core::channel::WakeWord;

/// The maximum number of open channels in a process.
const WORDS: usize = 32;

static ALL: [OnceLock<WakeWord>; WORDS] = [const { OnceLock::new() }; WORDS];
/// One bit for each word that is taken. Relaxed: the words themselves are never freed, and `OnceLock` orders their initialization.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A taken word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word(usize);

impl Word {
    /// Takes a word; `None` if all are taken. [`give_back`](Self::give_back) releases it.
    pub(super) fn take() -> Option<Self> {
        let free = |taken: u32| (taken != u32::MAX).then(|| taken | (taken + 1));
        let before = TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        let index = before.trailing_ones() as usize;
        ALL[index].get_or_init(WakeWord::default);
        Some(Self(index))
    }

    /// Releases the word. The thread that slept on it has ended.
    pub(super) fn give_back(self) {
        TAKEN.fetch_and(!(1 << self.0), Ordering::Relaxed);
    }

    /// Wakes the thread if it sleeps. Safe in signal handlers.
    pub(super) fn wake(self) {
        if let Some(word) = ALL[self.0].get() {
            word.wake();
        }
    }

    pub(super) fn announce(self) {
        if let Some(word) = ALL[self.0].get() {
            word.announce();
        }
    }

    pub(super) fn awake(self) {
        if let Some(word) = ALL[self.0].get() {
            word.awake();
        }
    }

    pub(super) fn sleep(self, time: Duration) {
        if let Some(word) = ALL[self.0].get() {
            word.sleep(time);
        }
    }
}

/// Wakes the threads of all sessions with triggers. Safe in signal handlers.
pub(super) fn wake_all() {
    let taken = TAKEN.load(Ordering::Relaxed);
    (0..WORDS).filter(|index| taken & (1 << index) != 0).for_each(|index| Word(index).wake());
}
