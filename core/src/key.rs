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

mod batch;

pub(crate) use batch::KeyBatch;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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
