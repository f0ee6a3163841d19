//! What all connections share.

use crate::hub::Hub;
use crate::memory::MemoryShare;
#[cfg(feature = "nats")]
use crate::nats::status::Status;
use crate::stream_control::Offer;
use std::cell::RefCell;
use std::io;
#[cfg(feature = "nats")]
use std::rc::Rc;

/// What all tasks share: they run on one thread, and none holds the hub while it waits.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) hub: RefCell<Hub>,
    /// Bytes of memory in all.
    #[cfg(feature = "nats")]
    pub(crate) all_memory: usize,
    /// The largest packet.
    pub(crate) largest: u32,
    pub(crate) offer: Offer,
    #[cfg(feature = "nats")]
    pub(crate) nats: Option<Rc<Status>>,
    #[cfg(feature = "nats")]
    pub(crate) publish: Option<Rc<crate::publish::Status>>,
}

impl Shared {
    /// Memory for so many bytes of a session; waits until it is free.
    pub(crate) async fn memory(&self, session: u64, bytes: u32) -> Option<MemoryShare> {
        let memory = self.hub.borrow().session(session).map(|session| session.memory().clone());
        memory?.take(bytes).await
    }
}

/// Random bytes, which cannot be guessed.
pub(crate) fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
