//! State shared by the tasks of all traces.

use crate::broker_status::PublishStatus;
use crate::options::PublishOptions;
use crate::shared::ServerState;
use crate::spool::Spool;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Packets being published may take this fraction of the memory limit, in addition to it.
const PART: usize = 4;

/// State shared by the tasks of all traces.
pub(super) struct PublisherContext {
    pub(super) shared: Rc<ServerState>,
    pub(super) status: Rc<PublishStatus>,
    pub(super) settings: PublishOptions,
    /// Bytes of packets that may be in flight.
    room: Arc<Semaphore>,
    all_room: usize,
}

impl PublisherContext {
    pub(super) fn new(shared: Rc<ServerState>, status: Rc<PublishStatus>, settings: PublishOptions) -> Self {
        let all_room = (shared.all_memory / PART).min(u32::MAX as usize);
        let room = Arc::new(Semaphore::new(all_room));
        Self { shared, status, settings, room, all_room }
    }

    pub(super) fn say(&self, message: String) {
        self.shared.hub.borrow_mut().say(message);
    }

    /// Reserves memory for a packet in flight; `None` if there is none free. A packet larger than the whole budget takes all of it.
    pub(super) fn room(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let size = u32::try_from(size.min(self.all_room)).unwrap_or(u32::MAX);
        Arc::clone(&self.room).try_acquire_many_owned(size).ok()
    }

    /// Updates the count of a trace's unpublished packets.
    pub(super) fn count(&self, spool: &mut Spool) {
        // A removed directory has none.
        let packets = spool.unpublished().unwrap_or_default();
        self.status.unpublished.borrow_mut().insert(spool.root.clone(), packets);
        self.shared.hub.borrow_mut().counts.unpublished = self.status.unpublished();
    }
}
