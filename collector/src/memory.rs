//! Limits the memory of packets and metadata on their way to the disk. An address may use half of it, a sender three eighths; a packet is charged at
//! most half.
//!
//! Memory is acquired before a packet is read. When all memory or the sender's share is used up, the connection is not read, and TCP flow control
//! stops the peer.

use crate::shares::Address;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Minimum charge per packet, because the collector keeps more than its bytes.
const MIN: u32 = 512;

/// The whole budget.
#[derive(Debug)]
pub(crate) struct Memory {
    all: Arc<Semaphore>,
    bytes: usize,
    /// The halves of the addresses that have senders.
    addresses: HashMap<Address, Weak<Semaphore>>,
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.min(Semaphore::MAX_PERMITS);
        Self { all: Arc::new(Semaphore::new(bytes)), bytes, addresses: HashMap::new() }
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.bytes.saturating_sub(self.all.available_permits()) as u64
    }

    /// Returns the budget of a sender at this address.
    pub(crate) fn sender(&mut self, address: Address) -> SenderMemory {
        let known = self.addresses.get(&address).and_then(Weak::upgrade);
        let of_address = known.unwrap_or_else(|| {
            self.addresses.retain(|_, address| address.strong_count() > 0);
            let half = Arc::new(Semaphore::new(self.bytes / 2));
            self.addresses.insert(address, Arc::downgrade(&half));
            half
        });
        let [most_of_address, most_of_sender] =
            [self.bytes / 2, self.bytes / 8 * 3].map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        let of_sender = Arc::new(Semaphore::new(most_of_sender as usize));
        SenderMemory { all: Arc::clone(&self.all), of_address, of_sender, most_of_address, most_of_sender }
    }
}

/// The budget of one sender. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct SenderMemory {
    all: Arc<Semaphore>,
    of_address: Arc<Semaphore>,
    of_sender: Arc<Semaphore>,
    /// The limits of the address and of the sender. A larger packet is charged the whole limit: a semaphore never grants more than it has, and would
    /// serve no other request while it tries.
    most_of_address: u32,
    most_of_sender: u32,
}

/// Acquired memory; dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    _all: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
    _of_sender: OwnedSemaphorePermit,
}

impl SenderMemory {
    /// Returns the charges for a packet of `bytes` bytes: the one to the address and to the whole budget, and the one to the sender.
    fn parts(&self, bytes: u32) -> (u32, u32) {
        let bytes = bytes.max(MIN);
        (bytes.min(self.most_of_address), bytes.min(self.most_of_sender))
    }

    /// Acquires memory for a packet of `bytes` bytes, at most half of the budget; waits until it is free.
    pub(crate) async fn take(&self, bytes: u32) -> Option<MemoryShare> {
        let (bytes, of_sender) = self.parts(bytes);
        // The smallest budget first, so that a task that waits for it holds nothing of a larger one.
        let of_sender = Arc::clone(&self.of_sender).acquire_many_owned(of_sender).await.ok()?;
        let of_address = Arc::clone(&self.of_address).acquire_many_owned(bytes).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(bytes).await.ok()?;
        Some(MemoryShare { _all: all, _of_address: of_address, _of_sender: of_sender })
    }

    /// Like [`take`](Self::take), but returns `None` instead of waiting.
    pub(crate) fn try_take(&self, bytes: u32) -> Option<MemoryShare> {
        let (bytes, of_sender) = self.parts(bytes);
        let of_sender = Arc::clone(&self.of_sender).try_acquire_many_owned(of_sender).ok()?;
        let of_address = Arc::clone(&self.of_address).try_acquire_many_owned(bytes).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(bytes).ok()?;
        Some(MemoryShare { _all: all, _of_address: of_address, _of_sender: of_sender })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn senders_and_addresses_leave_memory_for_others() {
        let mut memory = Memory::new(1024 << 10);
        let [here, there, further] = [1, 2, 3].map(|host| Address::from(IpAddr::from([10, 0, 0, host])));
        let senders = [here, here, here, there].map(|address| memory.sender(address));
        let [one, two, three, other] = &senders;
        let packet = one.try_take(384 << 10).expect("three eighths");
        assert!(one.try_take(1).is_none());
        let second = two.try_take(128 << 10).expect("the rest of the half");
        assert!(three.try_take(1).is_none(), "the address has its half");
        let third = other.try_take(512 << 10).expect("one packet may have a half");
        assert_eq!((memory.used(), other.try_take(1).is_none()), (1024 << 10, true));
        drop((packet, second));
        assert!(three.try_take(256 << 10).is_some());
        drop(third);
        // Metadata may be larger than the budget.
        let whole = other.try_take(4 << 20).expect("half of the memory");
        assert_eq!(memory.used(), 512 << 10);
        drop(whole);
        assert_eq!(memory.used(), 0);
        drop(senders);
        let _sender = memory.sender(further);
        assert_eq!(memory.addresses.len(), 1, "those without senders are forgotten");
    }
}
