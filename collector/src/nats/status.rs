//! What tasks tell the status of the collector, and what that tells them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// What is known of the traces of this collector, for its status.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) is_connected: Cell<bool>,
    /// Messages that the broker has and that are not stored, by the key of the trace.
    pub(crate) unstored: RefCell<BTreeMap<String, u64>>,
    /// The collector ends: its leases are to be released.
    pub(crate) is_ending: Cell<bool>,
    /// They are.
    pub(crate) has_ended: Cell<bool>,
}
