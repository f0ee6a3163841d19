//! Places for a value that somebody replaces about once a second, and that sites read without looking back.
//!
//! The words of a [latch](super::seqcount_latch) may change under a reader, who has to look again. A reader inside a section need not: a place is
//! not written again before every section is over in which it may have been read. Nobody waits for that. Whoever replaces the value
//! notes which sections are open, and looks at the next replacement whether those have ended:
//!
//! ```text
//!         put                put, take_away             note                settle: all that were noted have ended
//!   FREE ─────▶ CURRENT ───────────────────▶ RETIRED ─────────▶ NOTED ────────────────────────────────────────────▶ FREE
//! ```
//!
//! Where a section lasts longer than that (a probe that sleeps, a thread that does not run), places run out, and the value is taken away:
//! readers find `nothing` then, and go another way.
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **K4**: the value is in its place before the pointer leads there: Release, and Acquire in `read`.
//! * A place is used again as any list is freed: it is retired (P1's place is K4), the fence in `note` comes after that (G2), and
//!   `settle` has seen the sections end that were open then (G3) before the place is written.

use crate::primitive::{AtomicPtr, Ordering};
use std::sync::atomic::AtomicU32;

/// How many places there are: the current one, one that is noted, and two for the seconds in which that does not end.
pub(crate) const SLOTS: usize = 4;

/// The places, and which of them readers find. All but `read` is for one thread at a time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct RcuSlots<P> {
    current: AtomicPtr<P>,
    nothing: *const P,
    /// One bit for each place.
    retired: AtomicU32,
    noted: AtomicU32,
    places: [P; SLOTS],
}

// SAFETY: `nothing` is a reference to a `P` (the contract of `empty`), and `P` may be shared.
unsafe impl<P: Sync> Sync for RcuSlots<P> {}
// SAFETY: as above.
unsafe impl<P: Send + Sync> Send for RcuSlots<P> {}

impl<P> RcuSlots<P> {
    /// Readers find `nothing`.
    ///
    /// # Safety
    ///
    /// `nothing` is valid for as long as this is used.
    #[cfg(not(loom))]
    pub(crate) const unsafe fn empty(nothing: *const P, places: [P; SLOTS]) -> Self {
        let current = AtomicPtr::new(nothing.cast_mut());
        Self { current, nothing, retired: AtomicU32::new(0), noted: AtomicU32::new(0), places }
    }

    #[cfg(loom)]
    pub(crate) unsafe fn empty(nothing: *const P, places: [P; SLOTS]) -> Self {
        let current = AtomicPtr::new(nothing.cast_mut());
        Self { current, nothing, retired: AtomicU32::new(0), noted: AtomicU32::new(0), places }
    }

    /// The current place.
    ///
    /// # Safety
    ///
    /// The caller is inside a read-side section for as long as it uses the place.
    #[inline(always)]
    pub(crate) unsafe fn read(&self) -> &P {
        // K4: pairs with the swap in `lead_to`.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: one of the places, or `nothing`.
        unsafe { &*current }
    }

    /// Has `write` fill a free place, and leads readers there; to `nothing` if no place is free.
    pub(crate) fn put(&self, write: impl FnOnce(&P)) {
        let in_use = self.retired.load(Ordering::Relaxed) | self.noted.load(Ordering::Relaxed) | self.current_bit();
        match self.places.iter().enumerate().find(|(at, _)| in_use & 1 << at == 0) {
            Some((_, place)) => {
                write(place);
                self.lead_to(place);
            }
            None => self.take_away(),
        }
    }

    /// Leads readers to `nothing`.
    pub(crate) fn take_away(&self) {
        // SAFETY: the contract of `empty`.
        self.lead_to(unsafe { &*self.nothing });
    }

    fn lead_to(&self, place: &P) {
        let before = self.current_bit();
        // K4: pairs with the load in `read`.
        self.current.swap(std::ptr::from_ref(place).cast_mut(), Ordering::AcqRel);
        self.retired.store(self.retired.load(Ordering::Relaxed) | before, Ordering::Relaxed);
    }

    /// The bit of the current place; 0 if that is `nothing`.
    fn current_bit(&self) -> u32 {
        let current = self.current.load(Ordering::Relaxed).cast_const();
        self.places.iter().position(|place| std::ptr::eq(place, current)).map_or(0, |at| 1 << at)
    }

    /// Has `note` begin a grace period and note the sections that are open, if there is a place to be freed and nothing else noted;
    /// it says whether it could.
    pub(crate) fn note(&self, note: impl FnOnce() -> bool) {
        let retired = self.retired.load(Ordering::Relaxed);
        if retired != 0 && self.noted.load(Ordering::Relaxed) == 0 && note() {
            self.noted.store(retired, Ordering::Relaxed);
            self.retired.store(0, Ordering::Relaxed);
        }
    }

    /// Frees what was noted, if `have_passed` says that the sections have ended that were open then.
    pub(crate) fn settle(&self, have_passed: impl FnOnce() -> bool) {
        if self.noted.load(Ordering::Relaxed) != 0 && have_passed() {
            self.noted.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn value(slots: &RcuSlots<Cell<u32>>) -> u32 {
        // SAFETY: there is one thread, which puts nothing while it uses the place.
        unsafe { slots.read() }.get()
    }

    #[test]
    fn a_place_is_used_again_when_its_sections_have_ended() {
        let nothing = Cell::new(0);
        // SAFETY: declared before.
        let slots = unsafe { RcuSlots::empty(&raw const nothing, [const { Cell::new(0) }; SLOTS]) };
        let put = |number| slots.put(|place| place.set(number));
        assert_eq!(value(&slots), 0);
        for number in 1..=SLOTS as u32 {
            put(number);
            assert_eq!(value(&slots), number);
            // A fence that is refused frees nothing.
            slots.note(|| false);
            slots.settle(|| unreachable!("nothing is noted"));
        }
        put(10);
        assert_eq!(value(&slots), 0, "no place is free");
        slots.note(|| true);
        put(11);
        assert_eq!(value(&slots), 0, "the sections that were noted last");
        slots.settle(|| false);
        put(12);
        assert_eq!(value(&slots), 0, "and last");
        slots.settle(|| true);
        put(13);
        assert_eq!(value(&slots), 13);
    }

    #[test]
    fn one_replacement_after_the_other_never_runs_out() {
        let nothing = Cell::new(0);
        // SAFETY: declared before.
        let slots = unsafe { RcuSlots::empty(&raw const nothing, [const { Cell::new(0) }; SLOTS]) };
        for number in 1..100 {
            // Every third time a section lasts longer.
            slots.settle(|| number % 3 != 0);
            slots.take_away();
            slots.put(|place| place.set(number));
            slots.note(|| true);
            assert_eq!(value(&slots), number);
        }
    }
}
