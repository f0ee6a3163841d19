//! The model of the RCU slots: readers inside a section take the clock's line from them.

use crate::grace::{OpenSection, Section, begin_grace_period};
use crate::primitive::light_fence;
use crate::rcu_slots::{RcuSlots, SLOTS};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// The slots, and the section of the thread that reads them.
struct ClockSlots {
    section: Section,
    slots: RcuSlots<UnsafeCell<u64>>,
    /// Kept alive for `slots`, which points to it.
    _fallback: Box<UnsafeCell<u64>>,
}

impl ClockSlots {
    fn new() -> Self {
        let fallback = Box::new(UnsafeCell::new(0));
        // SAFETY: kept beside the slots, at an address that does not change.
        let slots = unsafe {
            RcuSlots::empty(&raw const *fallback, std::array::from_fn::<_, SLOTS, _>(|_| UnsafeCell::new(0)))
        };
        Self { section: Section::new(), slots, _fallback: fallback }
    }

    /// The effect of a site that reads the clock. Loom's cell reports a concurrent write of the slot.
    fn read(&self) -> u64 {
        self.section.enter(light_fence);
        // SAFETY: inside a section until `exit` below.
        let slot = unsafe { self.slots.read() };
        // SAFETY: as above.
        let value = slot.with(|slot| unsafe { *slot });
        self.section.exit();
        value
    }
}

/// A slot is written only before it is published and after all readers have left it, and readers never see an older value after a newer one.
/// Needs K4, G1/G2 and G3.
#[test]
fn a_slot_is_not_written_while_it_is_read() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let clock = Arc::new(ClockSlots::new());
        let reading = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || {
                let first = clock.read();
                let second = clock.read();
                assert!(second == 0 || second >= first, "an older value after a newer one");
            })
        };
        let mut polled: Option<OpenSection> = None;
        // One more than there are slots, so that a slot is reused if readers have left it.
        for value in 1..=SLOTS as u64 + 1 {
            clock.slots.reclaim(|| polled.is_none_or(|section| clock.section.has_ended(section)));
            // SAFETY: exclusive, as loom's cell checks.
            clock.slots.publish(|slot| slot.with_mut(|slot| unsafe { *slot = value }));
            clock.slots.start_poll(|| {
                let has_begun = begin_grace_period();
                polled = clock.section.open();
                has_begun
            });
        }
        reading.join().unwrap();
    });
}
