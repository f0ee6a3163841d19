//! A lock-free hash table from a value to the slot of its counters.
//!
//! ```text
//!   EMPTY ──compare-and-swap: the value's identity──▶ CLAIMED ──set the name──▶ NAMED
//! ```
//!
//! An identity has 64 bits. That of a number is a bijection of the number, so that no two numbers share one. A slot is claimed by one
//! compare-and-swap. A thread that finds its identity in a slot counts at once, even if the name is not set yet. No thread waits for
//! another, so a signal handler may interrupt it anywhere. Slots are never freed.

use super::key::{GroupKey, KeptKey, Key};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity in a free slot. Zero, whose identity it would be, has the last slot for itself.
const EMPTY: u64 = 0;
/// The identity in zero's slot once it is claimed.
const ZERO: u64 = 1;

#[derive(Debug)]
struct Slot {
    identity: AtomicU64,
    name: OnceLock<KeptKey>,
}

#[derive(Debug)]
pub(super) struct Groups {
    slots: Box<[Slot]>,
    /// With a random key per table, so that texts with the same identity cannot be chosen from outside.
    hasher: RandomState,
}

impl Groups {
    /// No groups at all.
    pub(super) fn none() -> Self {
        Self { slots: Box::default(), hasher: RandomState::new() }
    }

    /// A table for `max_groups` values, and zero.
    pub(super) fn new(max_groups: usize) -> Self {
        let slots = (0..=max_groups).map(|_| Slot { identity: AtomicU64::new(EMPTY), name: OnceLock::new() });
        Self { slots: slots.collect(), hasher: RandomState::new() }
    }

    /// The number of slots.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The slot of `key`, which is claimed if it is new; `None` if the table is full.
    pub(super) fn find(&self, key: &Key<'_>) -> Option<usize> {
        let zero = self.slots.len().checked_sub(1)?;
        let identity = self.identity(key);
        if identity == EMPTY {
            return self.is_of(zero, ZERO, key).then_some(zero);
        }
        let start = ((u128::from(identity) * zero as u128) >> 64) as usize;
        (start..zero).chain(0..start).find(|&index| self.is_of(index, identity, key))
    }

    /// Whether the slot at `index` is that of `identity`, or becomes it now.
    fn is_of(&self, index: usize, identity: u64, key: &Key<'_>) -> bool {
        let slot = &self.slots[index];
        match slot.identity.load(Ordering::Relaxed) {
            EMPTY => {}
            owner => return owner == identity,
        }
        // Relaxed: the value is published by `name`, not by the identity.
        match slot.identity.compare_exchange(EMPTY, identity, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => slot.name.set(KeptKey::of(key)).is_ok(),
            Err(owner) => owner == identity,
        }
    }

    /// The value of a slot that was counted in. Waits for the thread that is about to set the name.
    pub(super) fn key(&self, slot: usize) -> GroupKey {
        self.slots[slot].name.wait().group_key()
    }

    fn identity(&self, key: &Key<'_>) -> u64 {
        match *key {
            Key::Unsigned(number) => scramble(number),
            Key::Signed(number) => scramble(number.cast_unsigned()),
            Key::Float(number) => scramble(number.to_bits()),
            Key::Bool(value) => scramble(u64::from(value)),
            Key::Text(text) => self.hasher.hash_one(text).max(1),
            Key::Path(bytes) => self.hasher.hash_one(bytes).max(1),
        }
    }
}

/// The finalizer of splitmix64: a bijection that maps zero to zero.
const fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_slot_and_a_full_table_has_none() {
        let groups = Groups::new(3);
        let slots: Vec<_> = [7, 8, 9].map(|n| groups.find(&Key::Unsigned(n)).unwrap()).to_vec();
        assert_eq!([7, 8, 9].map(|n| groups.find(&Key::Unsigned(n)).unwrap()).to_vec(), slots);
        assert_eq!(groups.find(&Key::Unsigned(10)), None);
        assert_eq!(groups.find(&Key::Unsigned(0)), Some(3), "zero has its own slot");
        assert_eq!(groups.key(slots[1]), GroupKey::Unsigned(8));
        assert_eq!(groups.key(3), GroupKey::Unsigned(0));
    }

    #[test]
    fn a_table_without_slots_has_only_group_zero() {
        assert_eq!(Groups::none().find(&Key::Bool(false)), None);
        let groups = Groups::new(0);
        assert_eq!(groups.find(&Key::Bool(true)), None);
        assert_eq!(groups.find(&Key::Bool(false)), Some(0));
    }
}
