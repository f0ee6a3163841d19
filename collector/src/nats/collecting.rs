//! What the tasks of all traces share.

use super::former::Former;
use super::owner::Owner;
use super::settings::Settings;
use super::status::Status;
use crate::shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What the tasks of all traces share.
pub(super) struct Collecting {
    pub(super) shared: Rc<Shared>,
    pub(super) status: Rc<Status>,
    pub(super) settings: Settings,
    pub(super) owner: Owner,
    /// The keys of the traces that this collector has.
    pub(super) mine: RefCell<BTreeSet<String>>,
    /// Directories of an earlier collector that are not settled.
    pub(super) former: RefCell<Vec<Former>>,
}

impl Collecting {
    pub(super) fn say(&self, message: String) {
        self.shared.hub.borrow_mut().say(message);
    }
}
