//! The callsites of `tracing` and their tracepoints: a table that is read without a lock.
//!
//! An entry is never removed, and the table does not grow: a callsite that finds it full stays off.

use crate::describe::{self, Tracepoints};
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tracepoint_core::private::{MAX_RUNTIME_MARKERS, Registered, announce, update_lock};
use tracing_core::Metadata;
use tracing_core::callsite::Identifier;

#[derive(Debug)]
pub(crate) struct Callsite {
    identifier: Identifier,
    pub(crate) tracepoints: Tracepoints,
    /// Whether the last interest given to `tracing` is `never`. Relaxed: nothing else depends on it.
    is_off: AtomicBool,
}

impl Callsite {
    /// Whether the last interest given to `tracing` is `never`.
    pub(crate) fn is_known_as_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    pub(crate) fn set_known_as_off(&self, is_off: bool) {
        self.is_off.store(is_off, Ordering::Relaxed);
    }
}

/// Twice as many as there can be tracepoints, so that a search is short.
const SLOTS: usize = 2 * MAX_RUNTIME_MARKERS;

static TABLE: [OnceLock<Callsite>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// A hash of an identifier, which is an address, and one of a table of functions that is the same for nearly all.
#[derive(Default)]
struct Address(u64);

impl Hasher for Address {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = self.0.rotate_left(5) ^ number as u64;
    }

    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
    }
}

/// The slot in which the callsite is, or the first free one behind where it would be; `None` if there is none.
#[inline]
fn slot(identifier: &Identifier) -> Option<&'static OnceLock<Callsite>> {
    let mut address = Address::default();
    identifier.hash(&mut address);
    let first = address.finish() as usize % SLOTS;
    (0..SLOTS)
        .map(|step| &TABLE[(first + step) % SLOTS])
        .find(|slot| slot.get().is_none_or(|callsite| callsite.identifier == *identifier))
}

/// A callsite that was registered.
#[inline]
pub(crate) fn find(metadata: &Metadata<'_>) -> Option<&'static Callsite> {
    slot(&metadata.callsite())?.get()
}

/// A callsite; its tracepoints are registered if it is new. `None` if there are too many.
pub(crate) fn register(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    if let Some(found) = find(metadata) {
        return Some(found);
    }
    let identifier = metadata.callsite();
    // The lock is held around a fork, so that no child finds an entry that is being added for ever.
    let locked = update_lock();
    let callsite = slot(&identifier)?.get_or_init(|| {
        let tracepoints = describe::register(metadata, &locked);
        Callsite { identifier, tracepoints, is_off: AtomicBool::new(false) }
    });
    drop(locked);
    // Without the lock: it may wait for the agent, which has `tracing` ask for callsites.
    announce(Registered::Markers);
    Some(callsite)
}
