//! A seqcount latch: a few words that are replaced together and read together, without a lock, even by a signal handler that has
//! interrupted the thread that is replacing them. Linux has the same structure with the same name (`seqcount_latch_t`).
//!
//! There are two slots. One holds the current words; the writer fills the other, and then switches `current` to it. So a reader always finds a
//! slot that is not being written, and never waits. A slow reader's slot may be written by the next replacement but one: the reader loads
//! `current` again afterwards, and retries if it has changed.
//!
//! **Why a reader never accepts a mixture.** Suppose it has loaded generation g from `current`, and the words of slot g mod 2.
//!
//! * It cannot have words older than g's: those were overwritten before g was stored (K1).
//! * Words newer than g's were stored for generation g + 2 or later, because g + 1 is in the other slot. Before that, `current` had changed
//!   from g (to g + 1 at the latest), and the fences (K2) make the reader's second load return that value or a later one. Generations only
//!   grow, so g never comes back, and the reader retries.

use crate::primitive::{AtomicU64, Ordering, fence};

/// `N` words, or none.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct SeqcountLatch<const N: usize> {
    /// The generation of the current words; 0 if there are none.
    current: AtomicU64,
    slots: [[AtomicU64; N]; 2],
    /// The last generation that was published. Used by the writer only.
    last: AtomicU64,
}

impl<const N: usize> SeqcountLatch<N> {
    /// No words.
    #[cfg(not(loom))]
    pub(crate) const fn empty() -> Self {
        let slots = [const { [const { AtomicU64::new(0) }; N] }; 2];
        Self { current: AtomicU64::new(0), slots, last: AtomicU64::new(0) }
    }

    #[cfg(loom)]
    pub(crate) fn empty() -> Self {
        let slots = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        Self { current: AtomicU64::new(0), slots, last: AtomicU64::new(0) }
    }

    /// The current words, and the result of `meanwhile`, called while they were current: it is called again if they are replaced during the call.
    #[inline(always)]
    pub(crate) fn read<R>(&self, meanwhile: impl Fn() -> R) -> Option<([u64; N], R)> {
        loop {
            let generation = self.generation();
            if generation == 0 {
                return None;
            }
            let words = std::array::from_fn(|at| self.word(generation, at));
            let result = meanwhile();
            if self.is_current(generation) {
                return Some((words, result));
            }
        }
    }

    /// The generation of the current words; 0 if there are none.
    #[inline(always)]
    pub(crate) fn generation(&self) -> u64 {
        // K1: pairs with the Release store in `publish`: the words of a generation are in their slot before its number can be loaded.
        self.current.load(Ordering::Acquire)
    }

    /// A word of that generation or of a later one. It must not be used before [`is_current`](Self::is_current) has returned `true`.
    #[inline(always)]
    pub(crate) fn word(&self, generation: u64, at: usize) -> u64 {
        self.slots[(generation % 2) as usize][at].load(Ordering::Relaxed)
    }

    /// Returns whether all words that were read for the generation belong to it.
    #[inline(always)]
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        // K2: pairs with the Release fence in `publish`: a reader that has loaded a word of a later generation sees below that `current`
        // has changed.
        fence(Ordering::Acquire);
        self.current.load(Ordering::Relaxed) == generation
    }

    /// Replaces the words. Called by one thread at a time.
    pub(crate) fn publish(&self, words: [u64; N]) {
        let generation = self.last.load(Ordering::Relaxed) + 1;
        self.last.store(generation, Ordering::Relaxed);
        // K2: pairs with the Acquire fence in `is_current`: `current` has left the slot's last generation before the slot's words change.
        fence(Ordering::Release);
        for (slot, word) in self.slots[(generation % 2) as usize].iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        // K1: pairs with the Acquire load in `generation`.
        self.current.store(generation, Ordering::Release);
    }

    /// Removes the words. Must not run concurrently with itself or `publish`.
    pub(crate) fn clear(&self) {
        self.current.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    /// Replaces words that belong together as fast as possible, and removes them now and then.
    #[test]
    fn a_reader_never_sees_a_mixture() {
        static LATCH: SeqcountLatch<5> = SeqcountLatch::empty();
        static DONE: AtomicU64 = AtomicU64::new(0);
        assert_eq!(LATCH.read(|| ()), None);
        let rounds: u64 = if cfg!(miri) { 100 } else { 300_000 };
        thread::scope(|scope| {
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let (mut seen, mut last) = (0_u64, 0);
                        while DONE.load(Ordering::Relaxed) == 0 || seen == 0 {
                            if let Some((words, during)) = LATCH.read(|| seen) {
                                let first = words[0];
                                let whole: [u64; 5] = std::array::from_fn(|at| first.wrapping_mul(at as u64 + 1));
                                assert_eq!(words, whole);
                                assert_eq!(during, seen);
                                assert!(first >= last, "an older generation came after a newer one");
                                last = first;
                                seen += 1;
                            }
                        }
                    })
                })
                .collect();
            for round in 1..=rounds {
                LATCH.publish(std::array::from_fn(|at| round.wrapping_mul(at as u64 + 1)));
                if round % 64 == 0 && round != rounds {
                    LATCH.clear();
                }
            }
            DONE.store(1, Ordering::Relaxed);
            for reader in readers {
                reader.join().expect("no mixture");
            }
        });
    }

    /// The words are replaced during a read, which retries and returns the new ones.
    #[test]
    fn a_read_during_a_replacement_retries() {
        let latch = SeqcountLatch::<2>::empty();
        latch.publish([1, 1]);
        let calls = AtomicU64::new(0);
        let read = latch.read(|| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            if call < 3 {
                latch.publish([call + 2; 2]);
            }
            call
        });
        assert_eq!(read, Some(([4, 4], 3)));
        latch.clear();
        assert_eq!(latch.read(|| ()), None);
        latch.publish([9, 9]);
        assert_eq!(latch.read(|| ()), Some(([9, 9], ())));
    }
}
