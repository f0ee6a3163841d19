//! State shared by the tasks of all traces.

use super::former::Former;
use super::owner::Owner;
use super::settings::Settings;
use super::status::Status;
use crate::shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// State shared by the tasks of all traces.
pub(super) struct Collecting {
    pub(super) shared: Rc<Shared>,
    pub(super) status: Rc<Status>,
    pub(super) settings: Settings,
    pub(super) owner: Owner,
    /// Keys of the traces that this collector has leases on.
    pub(super) mine: RefCell<BTreeSet<String>>,
    /// Directories of an earlier collector whose leases are not checked yet.
    pub(super) former: RefCell<Vec<Former>>,
}

impl Collecting {
    pub(super) fn say(&self, message: String) {
        self.shared.hub.borrow_mut().say(message);
    }
}
