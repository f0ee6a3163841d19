//! Status of the tasks that take traces from a broker and publish traces to one, as the server reads it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// State of the traces of this collector.
#[derive(Debug, Default)]
pub(crate) struct CollectStatus {
    pub(crate) is_connected: Cell<bool>,
    /// Number of messages that the broker has and that are not stored, by the trace's key.
    pub(crate) unstored: RefCell<BTreeMap<String, u64>>,
    /// Set when the collector ends, so that its leases are released.
    pub(crate) is_ending: Cell<bool>,
    /// Set once they are released.
    pub(crate) has_ended: Cell<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct PublishStatus {
    /// Maximum time for publishing during shutdown.
    flush: Duration,
    pub(crate) is_connected: Cell<bool>,
    /// Number of stored, unpublished packets, by session directory.
    pub(crate) unpublished: RefCell<BTreeMap<PathBuf, u64>>,
    /// Set when the collector ends: nothing more is stored, and publishing stops at this time.
    pub(crate) until: Cell<Option<Instant>>,
    /// Set once the publisher has ended.
    pub(crate) has_ended: Cell<bool>,
}

impl PublishStatus {
    pub(crate) fn new(flush: Duration) -> Self {
        Self { flush, ..Self::default() }
    }

    /// Begins the shutdown.
    pub(crate) fn end(&self) {
        self.until.set(Some(Instant::now() + self.flush));
    }

    pub(crate) fn unpublished(&self) -> u64 {
        self.unpublished.borrow().values().sum()
    }

    /// Returns whether the time for publishing during shutdown is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= until)
    }
}
