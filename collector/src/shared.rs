//! State shared by all connections.

#[cfg(feature = "nats")]
use crate::broker_status::{CollectStatus, PublishStatus};
use crate::hub::Hub;
use crate::memory::MemoryShare;
use crate::stream_control::Offer;
use std::cell::RefCell;
use std::io;
#[cfg(feature = "nats")]
use std::rc::Rc;

/// State shared by all tasks. They run on one thread, and no task holds a borrow of the hub across an `await`.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) hub: RefCell<Hub>,
    /// Total packet memory in bytes.
    #[cfg(feature = "nats")]
    pub(crate) all_memory: usize,
    /// Maximum size of a packet in bytes.
    pub(crate) largest: u32,
    pub(crate) offer: Offer,
    #[cfg(feature = "nats")]
    pub(crate) nats: Option<Rc<CollectStatus>>,
    #[cfg(feature = "nats")]
    pub(crate) publish: Option<Rc<PublishStatus>>,
}

impl ServerState {
    /// Acquires memory for `bytes` bytes of a session's packets; waits until it is free.
    pub(crate) async fn memory(&self, session: u64, bytes: u32) -> Option<MemoryShare> {
        let memory = self.hub.borrow().session(session).map(|session| session.memory().clone());
        memory?.take(bytes).await
    }
}

/// Returns unpredictable random bytes.
pub(crate) fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
