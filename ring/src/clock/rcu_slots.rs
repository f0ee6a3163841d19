//! RCU slots: a value that is replaced about once a second, and that readers inside a section read without a retry.
//!
//! The words of a [seqcount latch](super::seqcount_latch) may change under a reader, which therefore has to check afterwards and retry. A
//! reader inside a section need not: a slot is written again only after every section that may have read it has ended. The writer does not
//! wait for that. It starts to poll for a grace period after it has replaced the value, and checks at the next replacement whether that has
//! elapsed:
//!
//! ```text
//!        publish                publish, unpublish               start_poll                    reclaim
//!   FREE ───────▶ CURRENT ────────────────────────▶ RETIRED ───────────────▶ PENDING ─────────────────────────▶ FREE
//!                                                          grace period begins       grace period has elapsed
//! ```
//!
//! If a section lasts longer than that (a probe that sleeps, a thread that is not scheduled), the free slots run out, and the value is
//! unpublished: readers then find `fallback`, and take the full path.
//!
//! **Cost.** With the latch alone, a record needs 18 more instructions: 100 in place of 82 with three numbers, 125 in place of 107 with a text
//! (callgrind, the difference of a long and a short run). The latch needs registers for its generation while the counter is read.
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **K4**: a value is in its slot before the pointer leads there: Release in `switch_to`, Acquire in `read`.
//! * A slot is reused like any other RCU-protected memory: the pointer is replaced (K4, in the role of P1), the fence that `start_poll` runs
//!   comes after that (G2), and `reclaim` has seen the end of all sections that were open then (G3) before the slot is written.

use crate::primitive::{AtomicPtr, Ordering};
use std::sync::atomic::AtomicU32;

/// Number of slots: the current one, one pending, and two for the seconds in which a section does not end.
pub(crate) const SLOTS: usize = 4;

/// The slots, and the state of each. All functions except `read` are for one thread at a time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RcuSlots<P> {
    current: AtomicPtr<P>,
    fallback: *const P,
    /// One bit for each slot that was replaced.
    retired: AtomicU32,
    /// One bit for each slot that was retired before the grace period that is being polled.
    pending: AtomicU32,
    slots: [P; SLOTS],
}

// SAFETY: `fallback` points to a `P` that outlives this value (the contract of `empty`), and `P` may be shared.
unsafe impl<P: Sync> Sync for RcuSlots<P> {}
// SAFETY: as above.
unsafe impl<P: Send + Sync> Send for RcuSlots<P> {}

impl<P> RcuSlots<P> {
    /// Creates slots without a value: readers find `fallback`.
    ///
    /// # Safety
    ///
    /// `fallback` is valid for as long as this is used.
    #[cfg(not(loom))]
    pub(crate) const unsafe fn empty(fallback: *const P, slots: [P; SLOTS]) -> Self {
        let current = AtomicPtr::new(fallback.cast_mut());
        Self { current, fallback, retired: AtomicU32::new(0), pending: AtomicU32::new(0), slots }
    }

    #[cfg(loom)]
    pub(crate) unsafe fn empty(fallback: *const P, slots: [P; SLOTS]) -> Self {
        let current = AtomicPtr::new(fallback.cast_mut());
        Self { current, fallback, retired: AtomicU32::new(0), pending: AtomicU32::new(0), slots }
    }

    /// The current slot, or `fallback`.
    ///
    /// # Safety
    ///
    /// The caller is inside a read-side section for as long as it uses the slot.
    #[inline(always)]
    pub(crate) unsafe fn read(&self) -> &P {
        // K4: pairs with the swap in `switch_to`.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: points to one of the slots, or to `fallback`; both are valid for as long as `self`.
        unsafe { &*current }
    }

    /// Calls `write` to fill a free slot, and publishes it; unpublishes the value if no slot is free.
    pub(crate) fn publish(&self, write: impl FnOnce(&P)) {
        let in_use = self.retired.load(Ordering::Relaxed) | self.pending.load(Ordering::Relaxed) | self.current_bit();
        match self.slots.iter().enumerate().find(|(at, _)| in_use & 1 << at == 0) {
            Some((_, slot)) => {
                write(slot);
                self.switch_to(slot);
            }
            None => self.unpublish(),
        }
    }

    /// Lets readers find `fallback`.
    pub(crate) fn unpublish(&self) {
        // SAFETY: valid by the contract of `empty`.
        self.switch_to(unsafe { &*self.fallback });
    }

    fn switch_to(&self, slot: &P) {
        let before = self.current_bit();
        // K4: pairs with the load in `read`.
        self.current.swap(std::ptr::from_ref(slot).cast_mut(), Ordering::AcqRel);
        self.retired.store(self.retired.load(Ordering::Relaxed) | before, Ordering::Relaxed);
    }

    /// The bit of the current slot; 0 if that is `fallback`.
    fn current_bit(&self) -> u32 {
        let current = self.current.load(Ordering::Relaxed).cast_const();
        self.slots.iter().position(|slot| std::ptr::eq(slot, current)).map_or(0, |at| 1 << at)
    }

    /// If a slot is retired and no grace period is being polled, calls `begin`, which begins a grace period and returns whether it could.
    pub(crate) fn start_poll(&self, begin: impl FnOnce() -> bool) {
        let retired = self.retired.load(Ordering::Relaxed);
        if retired != 0 && self.pending.load(Ordering::Relaxed) == 0 && begin() {
            self.pending.store(retired, Ordering::Relaxed);
            self.retired.store(0, Ordering::Relaxed);
        }
    }

    /// Frees the pending slots if `has_elapsed` returns that the latest grace period has elapsed.
    pub(crate) fn reclaim(&self, has_elapsed: impl FnOnce() -> bool) {
        if self.pending.load(Ordering::Relaxed) != 0 && has_elapsed() {
            self.pending.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn value(slots: &RcuSlots<Cell<u32>>) -> u32 {
        // SAFETY: there is one thread, which publishes nothing while it uses the slot.
        unsafe { slots.read() }.get()
    }

    #[test]
    fn a_slot_is_reused_after_a_grace_period() {
        let fallback = Cell::new(0);
        // SAFETY: `fallback` is declared first, and so dropped last.
        let slots = unsafe { RcuSlots::empty(&raw const fallback, [const { Cell::new(0) }; SLOTS]) };
        let publish = |number| slots.publish(|slot| slot.set(number));
        assert_eq!(value(&slots), 0);
        for number in 1..=SLOTS as u32 {
            publish(number);
            assert_eq!(value(&slots), number);
            // Without the fence no grace period begins, and nothing is freed.
            slots.start_poll(|| false);
            slots.reclaim(|| unreachable!("nothing is pending"));
        }
        publish(10);
        assert_eq!(value(&slots), 0, "no slot is free");
        slots.start_poll(|| true);
        publish(11);
        assert_eq!(value(&slots), 0, "the grace period has only begun");
        slots.reclaim(|| false);
        publish(12);
        assert_eq!(value(&slots), 0, "the grace period has not elapsed");
        slots.reclaim(|| true);
        publish(13);
        assert_eq!(value(&slots), 13);
    }

    #[test]
    fn slots_never_run_out_while_grace_periods_elapse() {
        let fallback = Cell::new(0);
        // SAFETY: `fallback` is declared first, and so dropped last.
        let slots = unsafe { RcuSlots::empty(&raw const fallback, [const { Cell::new(0) }; SLOTS]) };
        for number in 1..100 {
            // Every third grace period has not elapsed yet.
            slots.reclaim(|| number % 3 != 0);
            slots.unpublish();
            slots.publish(|slot| slot.set(number));
            slots.start_poll(|| true);
            assert_eq!(value(&slots), number);
        }
    }
}
