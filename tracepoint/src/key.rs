//! The on/off switch of a tracepoint or a marker: reference-counted, read by every site.
//!
//! The previous step of an event's path is the site, which asks the key; the next is [`crate::tracepoint`].

use crate::control::Locked;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A reference-counted switch.
///
/// ```text
///   OFF (0 users) ──first user: flag set──▶ ON (1 … n users) ──last user leaves: flag cleared──▶ OFF
/// ```
///
/// A site reads the flag without ordering: it decides only whether to enter the cold path, which then reads the published
/// lists with the ordering they need, and finds them empty if it came too early or too late.
#[derive(Debug)]
pub struct Key {
    on: AtomicBool,
    /// Changed under the control lock.
    users: AtomicU32,
}

impl Key {
    /// A key that is off.
    pub(crate) const fn new() -> Self {
        Self { on: AtomicBool::new(false), users: AtomicU32::new(0) }
    }

    /// Whether the key is on: one relaxed load.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// One more user. The lists that the site will read are in place already.
    pub(crate) fn enable(&self, _: &Locked<'_>) {
        let users = self.users.load(Ordering::Relaxed) + 1;
        self.users.store(users, Ordering::Relaxed);
        if users == 1 {
            self.on.store(true, Ordering::Relaxed);
        }
    }

    /// One user less. Called before what that user read is taken away.
    pub(crate) fn disable(&self, _: &Locked<'_>) {
        let users = self.users.load(Ordering::Relaxed) - 1;
        self.users.store(users, Ordering::Relaxed);
        if users == 0 {
            self.on.store(false, Ordering::Relaxed);
        }
    }
}
