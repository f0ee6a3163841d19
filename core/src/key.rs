//! The on/off switch of a tracepoint or a marker: reference-counted.
//!
//! On the path of an event, the key is between the [site](crate::site), which the key patches or which loads the key's flag, and the
//! cold path in [`crate::tracepoint`].
//!
//! ```text
//!   OFF (0 users) ──first user: sites on──▶ ON (1 … n users) ──last user leaves: sites off──▶ OFF
//! ```
//!
//! A site only decides whether to enter the cold path. The cold path reads the published lists with the ordering that they need, and
//! finds them empty if the site saw the key on too early or too late. Switching a key therefore needs no ordering of its own. A list is
//! published before its key is switched on, and removed after its key is switched off.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A reference-counted switch.
#[derive(Debug)]
pub struct Key {
    pub(crate) on: AtomicBool,
    /// Changed under the update lock.
    users: AtomicU32,
}

impl Key {
    /// A key that is off. Built by the macros only.
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self { on: AtomicBool::new(false), users: AtomicU32::new(0) }
    }

    /// Returns whether the key is on: one relaxed load.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Adds or removes one user, and returns whether this changes the state of the key.
    pub(crate) fn count(&self, on: bool) -> bool {
        let users = self.users.load(Ordering::Relaxed);
        self.users.store(if on { users + 1 } else { users - 1 }, Ordering::Relaxed);
        users == u32::from(!on)
    }
}
