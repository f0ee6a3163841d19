//! Several keys switched together.

use super::Key;
use crate::site::{self, SwitchError};
use std::sync::atomic::Ordering;
use tracepoint_ring::update::UpdateGuard;

/// Changes of keys, made together: their sites are switched in one batch.
#[derive(Debug)]
pub(crate) struct KeyBatch<'l> {
    /// Users are counted, and sites written, by one thread at a time.
    locked: &'l UpdateGuard<'l>,
    on: bool,
    keys: Vec<&'static Key>,
}

impl<'l> KeyBatch<'l> {
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

    /// Counts the users, and switches the sites of the keys whose state changes.
    ///
    /// # Errors
    ///
    /// If sites cannot be switched on. No key has gained a user then, and those whose state would have changed are off. Switching off
    /// does not fail.
    pub(crate) fn apply(self) -> Result<(), SwitchError> {
        let Self { locked, on, keys } = self;
        let changing: Vec<_> = keys.iter().copied().filter(|key| key.count(on)).map(|key| (key, on)).collect();
        for (key, on) in &changing {
            key.on.store(*on, Ordering::Relaxed);
        }
        let switched = site::switch(&changing, locked);
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
