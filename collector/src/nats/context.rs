//! State shared by the tasks of all traces.

use super::owner::Owner;
use super::stale::StaleTrace;
use crate::broker_status::CollectStatus;
use crate::options::NatsOptions;
use crate::shared::ServerState;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// State shared by the tasks of all traces.
pub(super) struct CollectorContext {
    pub(super) shared: Rc<ServerState>,
    pub(super) status: Rc<CollectStatus>,
    pub(super) settings: NatsOptions,
    pub(super) owner: Owner,
    /// Keys of the traces that this collector has leases on.
    pub(super) mine: RefCell<BTreeSet<String>>,
    /// Directories of an earlier collector whose leases are not checked yet.
    pub(super) former: RefCell<Vec<StaleTrace>>,
}

impl CollectorContext {
    pub(super) fn say(&self, message: String) {
        self.shared.hub.borrow_mut().say(message);
    }
}
