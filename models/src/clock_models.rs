//! The line in use by those inside a section.

use crate::grace::{OpenSection, Section, begin_grace_period};
use crate::rcu_slots::{RcuSlots, SLOTS};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct World {
    section: Section,
    slots: RcuSlots<UnsafeCell<u64>>,
    /// What the slots leads to at first: it lives as long.
    _nothing: Box<UnsafeCell<u64>>,
}

impl World {
    fn new() -> Self {
        let nothing = Box::new(UnsafeCell::new(0));
        // SAFETY: kept beside the slots, at an address that does not change.
        let slots =
            unsafe { RcuSlots::empty(&raw const *nothing, std::array::from_fn::<_, SLOTS, _>(|_| UnsafeCell::new(0))) };
        Self { section: Section::new(), slots, _nothing: nothing }
    }

    /// What a site does. Loom's cell sees to it that nobody writes the place meanwhile.
    fn read(&self) -> u64 {
        self.section.enter();
        // SAFETY: inside a section until `exit` below.
        let place = unsafe { self.slots.read() };
        // SAFETY: as above.
        let value = place.with(|place| unsafe { *place });
        self.section.exit();
        value
    }
}

/// A place is written only before it leads anywhere, and when all have left it; readers never go back. Needs K4, G1/G2 and G3.
#[test]
fn a_place_is_not_written_while_it_is_read() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = Arc::new(World::new());
        let reading = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let first = world.read();
                let second = world.read();
                assert!(second == 0 || second >= first, "the value of before came back");
            })
        };
        let mut noted: Option<OpenSection> = None;
        // One more than there are places, so that one is used again, if it may be.
        for value in 1..=SLOTS as u64 + 1 {
            world.slots.settle(|| noted.is_none_or(|section| world.section.has_ended(section)));
            // SAFETY: loom's cell is what shows it.
            world.slots.put(|place| place.with_mut(|place| unsafe { *place = value }));
            world.slots.note(|| {
                let fenced = begin_grace_period();
                noted = world.section.open();
                fenced
            });
        }
        reading.join().unwrap();
    });
}
