//! The callsites of `tracing` and their tracepoints, in a lock-free hash table.
//!
//! Entries are never removed and the table does not grow; a callsite that finds it full stays off.

use crate::describe::{self, Tracepoints};
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tracepoint_core::internal::{MAX_RUNTIME_MARKERS, Registration, announce, update_lock};
use tracing_core::Metadata;
use tracing_core::callsite::Identifier;

#[derive(Debug)]
pub(crate) struct Callsite {
    identifier: Identifier,
    pub(crate) tracepoints: Tracepoints,
    /// True if the last interest returned to `tracing` is `never`. Relaxed: it publishes no other data.
    is_off: AtomicBool,
}

impl Callsite {
    /// Returns whether the last interest returned to `tracing` is `never`.
    pub(crate) fn is_known_as_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    pub(crate) fn set_known_as_off(&self, is_off: bool) {
        self.is_off.store(is_off, Ordering::Relaxed);
    }
}

/// Twice the maximum number of tracepoints, to keep probe sequences short.
const SLOTS: usize = 2 * MAX_RUNTIME_MARKERS;

static TABLE: [OnceLock<Callsite>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// Hasher for an identifier, which consists of an address and a vtable pointer that nearly all share.
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

/// Returns the callsite's slot, or the free slot where it would be inserted; `None` if the table is full.
#[inline]
fn slot(identifier: &Identifier) -> Option<&'static OnceLock<Callsite>> {
    let mut address = Address::default();
    identifier.hash(&mut address);
    let first = address.finish() as usize % SLOTS;
    (0..SLOTS)
        .map(|step| &TABLE[(first + step) % SLOTS])
        .find(|slot| slot.get().is_none_or(|callsite| callsite.identifier == *identifier))
}

/// Returns a registered callsite.
#[inline]
pub(crate) fn find(metadata: &Metadata<'_>) -> Option<&'static Callsite> {
    slot(&metadata.callsite())?.get()
}

/// Returns the callsite, and registers its tracepoints if it is new. `None` if there are too many.
pub(crate) fn register(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    if let Some(found) = find(metadata) {
        return Some(found);
    }
    let identifier = metadata.callsite();
    // The lock is held around a fork, so that a child never finds an entry whose insertion was interrupted.
    let locked = update_lock();
    let callsite = slot(&identifier)?.get_or_init(|| {
        let tracepoints = describe::register(metadata, &locked);
        Callsite { identifier, tracepoints, is_off: AtomicBool::new(false) }
    });
    drop(locked);
    // After unlocking: this may wait for the agent, which makes `tracing` query callsites.
    announce(Registration::Markers);
    Some(callsite)
}
