//! Switches several keys together, and their sites.

use super::{SiteSwitchError, switch};
use crate::key::Key;
use std::sync::atomic::Ordering;
use tracepoint_ring::update::UpdateGuard;

/// Changes of several keys, whose sites are switched in one batch.
#[derive(Debug)]
pub(crate) struct KeyBatch<'l> {
    /// The update lock: one thread at a time counts users and writes sites.
    locked: &'l UpdateGuard<'l>,
    on: bool,
    keys: Vec<&'static Key>,
}

impl<'l> KeyBatch<'l> {
    /// A batch that adds one user to each of its keys.
    pub(crate) const fn on(locked: &'l UpdateGuard<'l>) -> Self {
        Self { locked, on: true, keys: Vec::new() }
    }

    /// A batch that removes one user from each of its keys.
    pub(crate) const fn off(locked: &'l UpdateGuard<'l>) -> Self {
        Self { locked, on: false, keys: Vec::new() }
    }

    pub(crate) fn add(&mut self, key: &'static Key) {
        self.keys.push(key);
    }

    /// Counts the users, and switches the sites of the keys whose state changes.
    ///
    /// # Errors
    ///
    /// If sites cannot be switched on. Then no key has gained a user, and the keys whose state would have changed are off. Switching off
    /// never fails.
    pub(crate) fn apply(self) -> Result<(), SiteSwitchError> {
        let Self { locked, on, keys } = self;
        let changing: Vec<_> = keys.iter().copied().filter(|key| key.count(on)).map(|key| (key, on)).collect();
        for (key, on) in &changing {
            key.on.store(*on, Ordering::Relaxed);
        }
        let switched = switch(&changing, locked);
        if switched.is_err() {
            for key in keys {
                key.count(!on);
            }
            for (key, on) in changing {
                key.on.store(!on, Ordering::Relaxed);
            }
        }
        switched
    }
}
