//! State that decoding one value leaves for later values.

use crate::metadata::types::Slot;

/// The state of a stream between values: its clock, and the integers that determine later lengths and options.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The clock of the stream, in cycles.
    pub(crate) clock: u64,
    shared: Vec<u64>,
    event: Vec<u64>,
}

impl State {
    pub(crate) fn new((shared, event): (usize, usize)) -> Self {
        Self { clock: 0, shared: vec![0; shared], event: vec![0; event] }
    }

    /// The same clock with empty slots, for other metadata.
    pub(crate) fn with_slots(&self, slots: (usize, usize)) -> Self {
        Self { clock: self.clock, ..Self::new(slots) }
    }

    pub(super) fn keep(&mut self, slot: Slot, value: u64) {
        let (slots, index) = match slot {
            Slot::Shared(index) => (&mut self.shared, index),
            Slot::Event(index) => (&mut self.event, index),
        };
        if let Some(place) = slots.get_mut(index as usize) {
            *place = value;
        }
    }

    pub(super) fn kept(&self, slot: Option<Slot>) -> u64 {
        let place = match slot {
            Some(Slot::Shared(index)) => self.shared.get(index as usize),
            Some(Slot::Event(index)) => self.event.get(index as usize),
            None => None,
        };
        place.copied().unwrap_or(0)
    }

    /// Sets the low bits of the clock.
    pub(crate) fn tick(&mut self, low: u64, bits: u8) {
        self.clock = extend(self.clock, low, bits);
    }
}

/// The first time at or after `before` whose lowest `bits` bits equal `low`.
pub(crate) fn extend(before: u64, low: u64, bits: u8) -> u64 {
    match 1u64.checked_shl(bits.into()) {
        Some(span) => before.wrapping_add(low.wrapping_sub(before) % span),
        None => low,
    }
}
