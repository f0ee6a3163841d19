//! The session that a state dump runs for, as seen by the dump.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A running dump, as passed to its function.
#[derive(Debug)]
pub struct Dump {
    pub(super) name: String,
    pub(super) session: String,
    pub(super) ended: Arc<AtomicBool>,
}

impl Dump {
    /// Returns the name under which the dump was registered.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the session that it runs for.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns whether the session has ended, so that no recording gets further events. Long dumps should check it now and then.
    pub fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}
