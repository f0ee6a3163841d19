//! A cache of data about each kind of event of a trace, keyed by the address of the kind.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use tracepoint_reader::metadata::EventClass;

/// Maximum number of cached kinds. A live trace describes its kinds repeatedly.
const MAX: usize = 1 << 14;

#[derive(Clone, Debug)]
pub(crate) struct Kinds<T> {
    /// The kind is kept alive, so that its address is not reused.
    known: HashMap<usize, (Arc<EventClass>, T), BuildHasherDefault<AddressHasher>>,
}

impl<T> Default for Kinds<T> {
    fn default() -> Self {
        Self { known: HashMap::default() }
    }
}

impl<T> Kinds<T> {
    /// Returns the data about a kind; calls `make` for a kind that is not cached.
    #[inline]
    pub(crate) fn get(&mut self, class: &Arc<EventClass>, make: impl FnOnce() -> T) -> &T {
        let key = Arc::as_ptr(class) as usize;
        if self.known.len() >= MAX && !self.known.contains_key(&key) {
            self.known.clear();
        }
        &self.known.entry(key).or_insert_with(|| (Arc::clone(class), make())).1
    }
}

/// Hashes addresses. They come from the allocator, so collisions cannot be provoked.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    #[inline]
    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0.rotate_left(5) ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The map indexes by the lower bits, which the multiplication mixes least.
        self.0.rotate_right(32)
    }
}
