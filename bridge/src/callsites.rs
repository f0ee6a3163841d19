//! The callsites of `tracing` and their tracepoints: a table that is read without a lock.
//!
//! An entry is never removed or changed, and the table does not grow: a callsite that finds it full stays off.

use crate::describe::{self, Tracepoints};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};
use tracepoint_core::private::{MAX_RUNTIME_MARKERS, announce};
use tracing_core::Metadata;
use tracing_core::callsite::Identifier;

#[derive(Debug)]
struct Entry {
    callsite: Identifier,
    tracepoints: Tracepoints,
}

/// Twice as many as there can be tracepoints, so that a search is short.
const SLOTS: usize = 2 * MAX_RUNTIME_MARKERS;

static TABLE: [OnceLock<Entry>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// Held while an entry is added.
static ADDING: Mutex<()> = Mutex::new(());

/// A hash of an identifier, which is an address.
#[derive(Default)]
struct Address(u64);

impl Hasher for Address {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 >> 40
    }
}

/// The slot in which the callsite is, or the first free one behind where it would be; `None` if there is none.
fn slot(callsite: &Identifier) -> Option<&'static OnceLock<Entry>> {
    let mut address = Address::default();
    callsite.hash(&mut address);
    let first = address.finish() as usize % SLOTS;
    TABLE[first..].iter().chain(&TABLE[..first]).find(|slot| slot.get().is_none_or(|entry| entry.callsite == *callsite))
}

/// The tracepoints of a callsite that was registered.
#[inline]
pub(crate) fn find(metadata: &Metadata<'_>) -> Option<&'static Tracepoints> {
    slot(&metadata.callsite())?.get().map(|entry| &entry.tracepoints)
}

/// The tracepoints of a callsite, which are registered if they are new.
pub(crate) fn register(metadata: &'static Metadata<'static>) -> Option<&'static Tracepoints> {
    let callsite = metadata.callsite();
    if let Some(found) = find(metadata) {
        return Some(found);
    }
    let adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = slot(&callsite)?.get_or_init(|| Entry { callsite, tracepoints: describe::register(metadata) });
    drop(adding);
    // Without the lock: it may wait for the agent, which has `tracing` ask for callsites.
    announce();
    Some(&entry.tracepoints)
}
