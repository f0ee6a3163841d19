//! What the tasks of all traces share.

use super::settings::Settings;
use super::spool::Spool;
use super::status::Status;
use crate::shared::Shared;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The part of the limit on memory that packets under way may take, beside that limit.
const PART: usize = 4;

/// What the tasks of all traces share.
pub(super) struct Publishing {
    pub(super) shared: Rc<Shared>,
    pub(super) status: Rc<Status>,
    pub(super) settings: Settings,
    /// Bytes of packets that may be under way.
    room: Arc<Semaphore>,
    all_room: usize,
}

impl Publishing {
    pub(super) fn new(shared: Rc<Shared>, status: Rc<Status>, settings: Settings) -> Self {
        let all_room = (shared.all_memory / PART).min(u32::MAX as usize);
        let room = Arc::new(Semaphore::new(all_room));
        Self { shared, status, settings, room, all_room }
    }

    pub(super) fn say(&self, message: String) {
        self.shared.hub.borrow_mut().say(message);
    }

    /// Room for a packet under way, if there is any. A packet may be larger than all of it.
    pub(super) fn room(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let size = u32::try_from(size.min(self.all_room)).unwrap_or(u32::MAX);
        Arc::clone(&self.room).try_acquire_many_owned(size).ok()
    }

    /// Counts what of a trace is not published.
    pub(super) fn count(&self, spool: &mut Spool) {
        // A directory that is gone has nothing.
        let packets = spool.unpublished().unwrap_or_default();
        self.status.unpublished.borrow_mut().insert(spool.root.clone(), packets);
        self.shared.hub.borrow_mut().counts.unpublished = self.status.unpublished();
    }
}
