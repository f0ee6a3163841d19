//! What the publisher tells the status of the collector, and what that tells it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The state of the publisher.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// How long is published at the end.
    flush: Duration,
    pub(crate) is_connected: Cell<bool>,
    /// Packets that are stored and not published, by the directory of the session.
    pub(crate) unpublished: RefCell<BTreeMap<PathBuf, u64>>,
    /// The collector ends: nothing more is stored, and what there is is published until then.
    pub(super) until: Cell<Option<Instant>>,
    /// The publisher has ended.
    pub(crate) has_ended: Cell<bool>,
}

impl Status {
    pub(crate) fn new(flush: Duration) -> Self {
        Self { flush, ..Self::default() }
    }

    /// The collector ends.
    pub(crate) fn end(&self) {
        self.until.set(Some(Instant::now() + self.flush));
    }

    /// Packets that are stored and not published.
    pub(crate) fn unpublished(&self) -> u64 {
        self.unpublished.borrow().values().sum()
    }

    /// Whether the collector ends, and the time for that has passed.
    pub(super) fn is_over(&self) -> bool {
        self.until.get().is_some_and(|until| Instant::now() >= until)
    }
}
