//! Status shared between the tasks and the collector.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// State of the traces of this collector.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) is_connected: Cell<bool>,
    /// Number of messages that the broker has and that are not stored, by the trace's key.
    pub(crate) unstored: RefCell<BTreeMap<String, u64>>,
    /// Set when the collector ends, so that its leases are released.
    pub(crate) is_ending: Cell<bool>,
    /// Set once they are released.
    pub(crate) has_ended: Cell<bool>,
}
