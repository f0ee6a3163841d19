//! The on/off switch of a tracepoint or a marker: reference-counted.
//!
//! The previous step of an event's path is the [site](crate::site), which has been patched by the key, or asks it; the next is
//! [`crate::tracepoint`].
//!
//! ```text
//!   OFF (0 users) ──first user: sites on──▶ ON (1 … n users) ──last user leaves: sites off──▶ OFF
//! ```
//!
//! A site decides only whether to enter the cold path. That reads the published lists with the ordering that they need, and
//! finds them empty if it came too early or too late: so turning a key needs no ordering of its own. Lists are published before a
//! key goes on, and taken away after it went off.

use crate::site::{self, SwitchError};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tracepoint_ring::update::UpdateGuard;

/// A reference-counted switch.
#[derive(Debug)]
pub struct Key {
    on: AtomicBool,
    /// Changed under the control lock.
    users: AtomicU32,
}

impl Key {
    /// A key that is off. Built by the macros only.
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self { on: AtomicBool::new(false), users: AtomicU32::new(0) }
    }

    /// Whether the key is on: one relaxed load.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// One more, or one less; gives whether the key turns by it.
    fn count(&self, on: bool) -> bool {
        let users = self.users.load(Ordering::Relaxed);
        self.users.store(if on { users + 1 } else { users - 1 }, Ordering::Relaxed);
        users == u32::from(!on)
    }
}

/// Changes of keys, made together: their sites are switched in one batch.
#[derive(Debug)]
pub(crate) struct Turn<'l> {
    /// Users are counted, and sites written, by one thread at a time.
    locked: &'l UpdateGuard<'l>,
    on: bool,
    keys: Vec<&'static Key>,
}

impl<'l> Turn<'l> {
    /// One more user for each key that will be added.
    pub(crate) const fn on(locked: &'l UpdateGuard<'l>) -> Self {
        Self { locked, on: true, keys: Vec::new() }
    }

    /// One user less for each.
    pub(crate) const fn off(locked: &'l UpdateGuard<'l>) -> Self {
        Self { locked, on: false, keys: Vec::new() }
    }

    pub(crate) fn add(&mut self, key: &'static Key) {
        self.keys.push(key);
    }

    /// Counts the users and switches the sites of the keys that turn.
    ///
    /// # Errors
    ///
    /// If sites cannot be switched on: no key has a user more then, and those that would have turned are off. Switching off does not
    /// fail.
    pub(crate) fn apply(self) -> Result<(), SwitchError> {
        let Self { locked, on, keys } = self;
        let turning: Vec<_> = keys.iter().copied().filter(|key| key.count(on)).map(|key| (key, on)).collect();
        for (key, on) in &turning {
            key.on.store(*on, Ordering::Relaxed);
        }
        let switched = site::switch(&turning, locked);
        if switched.is_err() {
            for key in keys {
                key.count(!on);
            }
            for (key, on) in turning {
                key.on.store(!on, Ordering::Relaxed);
            }
        }
        switched
    }
}
