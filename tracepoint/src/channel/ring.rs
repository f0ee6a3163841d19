//! The ring of one thread: a buffer for its events, a small one for those of signal handlers that interrupt a write, and the
//! thread's row of the account.
//!
//! ```text
//!   SPARE (in the pool) ──take: the thread's first event──▶ OWNED ──thread exit──▶ ENDED ──drained, or recycled──▶ SPARE
//! ```
//!
//! SPARE → OWNED is the swap that takes it out of the pool. OWNED → ENDED is a Release store by the owner (L1), whose Acquire
//! partner is the drain's look at the state: from there on the drain is the one who may touch what was the owner's.

use super::account::{Loss, Row};
use super::buffer::{Buffer, Refused};
use super::config::{Channel, Policy};
use super::memory::RingMemory;
use super::packet::Stream;
use crate::field::Fields;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

const SPARE: u32 = 0;
const OWNED: u32 = 1;
const ENDED: u32 = 2;

/// The packets of the nested buffer, and the size of each.
const NESTED_PACKETS: usize = 4;
const NESTED_PACKET_SIZE: usize = 4096;

/// One thread's ring.
pub(super) struct Ring {
    main: Buffer,
    nested: Buffer,
    pub(super) row: Row,
    state: AtomicU32,
    tid: AtomicU32,
    /// Keeps the memory of both buffers; dropped after them.
    _memory: Box<dyn RingMemory>,
}

/// How much memory a ring of this channel needs, in bytes.
pub(super) fn memory_size(config: &Channel) -> usize {
    config.packets * config.packet_size() + NESTED_PACKETS * nested_packet_size(config)
}

fn nested_packet_size(config: &Channel) -> usize {
    config.packet_size().min(NESTED_PACKET_SIZE)
}

impl Ring {
    pub(super) fn new(
        config: &Channel,
        uuid: [u8; 16],
        class: u32,
        index: u64,
        events: usize,
        memory: Box<dyn RingMemory>,
        now: u64,
    ) -> io::Result<Self> {
        if memory.len() < memory_size(config) || !memory.base().as_ptr().addr().is_multiple_of(8) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "ring memory is too small or not aligned to 8"));
        }
        let base = memory.base().as_ptr();
        let main_size = config.packets * config.packet_size();
        let stream = |instance| Stream { uuid, class, instance };
        // SAFETY: `memory` is large enough for both buffers, one after the other, and lives in the ring beside them; nobody
        // else uses it (the contract of RingMemory). Packet sizes are multiples of 8, `check` saw to their being large enough.
        let (main, nested) = unsafe {
            (
                Buffer::new(stream(2 * index), config.policy, base, config.packet_size(), config.packets, now),
                Buffer::new(
                    stream(2 * index + 1),
                    config.policy,
                    base.add(main_size),
                    nested_packet_size(config),
                    NESTED_PACKETS,
                    now,
                ),
            )
        };
        Ok(Self {
            main,
            nested,
            row: Row::new(events),
            state: AtomicU32::new(SPARE),
            tid: AtomicU32::new(0),
            _memory: memory,
        })
    }

    // -- data plane: the owner ------------------------------------------------------------------------------------------

    pub(super) fn own(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
        self.state.store(OWNED, Ordering::Relaxed);
    }

    /// The owner is gone for good.
    pub(super) fn end(&self) {
        // L1: pairs with the Acquire load in `has_ended`.
        self.state.store(ENDED, Ordering::Release);
    }

    /// Records an event, or counts why not.
    #[inline(always)]
    pub(super) fn record<V: Fields>(&self, id: u16, time: u64, values: &V) {
        let tid = self.tid.load(Ordering::Relaxed);
        match self.main.record(tid, id, time, values) {
            Ok(()) => self.row.event(id).recorded.increment(),
            Err(refused) => self.not_in_main(refused, tid, id, time, values),
        }
    }

    #[cold]
    fn not_in_main<V: Fields>(&self, refused: Refused, tid: u32, id: u16, time: u64, values: &V) {
        match refused {
            Refused::Lost(reason) => self.lost(id, reason),
            Refused::Writing => match self.nested.record(tid, id, time, values) {
                Ok(()) => self.row.event(id).recorded.increment(),
                Err(Refused::Lost(reason)) => self.lost_in(&self.nested, id, reason),
                Err(Refused::Writing) => self.lost_in(&self.nested, id, Loss::Nested),
            },
        }
    }

    pub(super) fn lost(&self, id: u16, reason: Loss) {
        self.lost_in(&self.main, id, reason);
    }

    fn lost_in(&self, buffer: &Buffer, id: u16, reason: Loss) {
        self.row.event(id).lost(reason).increment();
        buffer.count_discarded();
    }

    // -- consumer -------------------------------------------------------------------------------------------------------

    pub(super) fn has_ended(&self) -> bool {
        // L1: pairs with the Release store in `end`.
        self.state.load(Ordering::Acquire) == ENDED
    }

    /// Makes the ring of an ended thread ready for another: its open packets are closed, the streams go on.
    pub(super) fn recycle(&self) {
        self.flush();
        self.state.store(SPARE, Ordering::Relaxed);
    }

    /// Closes open packets. The owner is outside, or gone.
    pub(super) fn flush(&self) {
        self.main.flush();
        self.nested.flush();
    }

    pub(super) fn buffers(&self) -> [&Buffer; 2] {
        [&self.main, &self.nested]
    }

    /// Whether a ring of an ended thread may go to another thread now, or should keep what it holds for as long as it can.
    pub(super) fn keeps_history(config: &Channel) -> bool {
        config.policy == Policy::Overwrite
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("main", &self.main).field("nested", &self.nested).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::memory::{AnonymousMemory, MemorySource, RingRequest};

    fn ring() -> Ring {
        let config = Channel::discard(8 * 4096);
        let memory = AnonymousMemory
            .ring_memory(RingRequest::new(config.name.as_str(), 0, Some(0), memory_size(&config)))
            .expect("memory");
        Ring::new(&config, [1; 16], 0, 0, 1, memory, 100).expect("large enough")
    }

    /// A signal handler that interrupts a write finds the main buffer taken; one that interrupts that one finds both taken.
    #[test]
    fn handlers_write_beside_a_write() {
        let ring = ring();
        ring.main.interrupted(|| {
            ring.record(0, 200, &(1u64, ()));
            ring.nested.interrupted(|| ring.record(0, 300, &(2u64, ())));
        });
        ring.record(0, 400, &(3u64, ()));
        let event = ring.row.event(0);
        assert_eq!((event.recorded.get(), event.lost(Loss::Nested).get()), (2, 1));
        let [main, nested] = ring.buffers().map(Buffer::account);
        assert_eq!((main.recorded, main.discarded), (1, 0));
        assert_eq!((nested.recorded, nested.discarded), (1, 1), "the loss is counted where the event would have gone");
    }

    /// The clock stands behind the last record when a handler recorded after the clock was read.
    #[test]
    fn time_does_not_go_back_and_says_so() {
        let ring = ring();
        ring.record(0, 500, &(1u64, ()));
        ring.record(0, 400, &(2u64, ()));
        assert_eq!(ring.main.account().clamped, 1);
        ring.flush();
        let packets = ring.main.closed_packets();
        // SAFETY: the packet is closed and not released.
        let (bytes, _, _) = unsafe { ring.main.packet(packets.start) };
        let time = |offset: usize| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes")) >> 16;
        assert_eq!((time(96), time(96 + 16)), (500, 500));
    }
}
