//! Caches information about shared objects, by their addresses.

use std::sync::Arc;

const SLOTS: usize = 256;

/// Caches at most one value per slot; the address of an object determines its slot.
///
/// An object is kept alive while its value is cached, so that no other object gets its address.
#[derive(Debug)]
pub(super) struct PointerCache<K, V> {
    slots: Vec<Option<(Arc<K>, V)>>,
}

impl<K, V> PointerCache<K, V> {
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| None).collect() }
    }

    /// The value of `object`: the cached one if it `is_valid`, otherwise a new one.
    pub(super) fn get(&mut self, object: &Arc<K>, is_valid: impl FnOnce(&V) -> bool, make: impl FnOnce() -> V) -> &V {
        // Fibonacci hashing: addresses differ in their middle bits.
        let hash = (Arc::as_ptr(object) as usize as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut self.slots[(hash >> 56) as usize % SLOTS];
        let is_known = slot.as_ref().is_some_and(|(known, value)| Arc::ptr_eq(known, object) && is_valid(value));
        if !is_known {
            *slot = None;
        }
        &slot.get_or_insert_with(|| (Arc::clone(object), make())).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_their_objects() {
        let objects: Vec<_> = (0..2000).map(Arc::new).collect();
        let mut cache = PointerCache::new();
        for _ in 0..2 {
            for object in &objects {
                assert_eq!(cache.get(object, |_| true, || **object), &**object);
            }
        }
        let object = &objects[7];
        cache.get(object, |_| false, || 1);
        assert_eq!(cache.get(object, |value| *value == 1, || 2), &1);
        assert_eq!(cache.get(object, |_| false, || 3), &3);
    }
}
