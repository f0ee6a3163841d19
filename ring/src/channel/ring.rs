//! The ring of one thread: a buffer for its events, a small one for events of signal handlers that interrupt a write, and the thread's row of
//! the account.

use super::account::EventCounters;
use super::buffer::Buffer;
use super::config::Channel;
use super::header::{Header, Layout, Owner, RingMapping};
use super::memory::RingMemory;
use super::packet_header::StreamKey;
use super::wait_policy::WaitPolicy;
use super::wake_word::WakeWord;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One thread's ring.
pub(super) struct Ring {
    pub(super) main: Buffer,
    pub(super) nested: Buffer,
    /// The start of the memory, where the header is.
    pub(super) base: NonNull<u8>,
    account: NonNull<[EventCounters]>,
    /// Owns the memory of all of these; dropped after them.
    memory: RingMapping,
    /// True if the packets have no memory. Accessed by the consumer, under the lock of the channel's rings.
    is_parked: AtomicBool,
    /// True if threads start in it, and continue in a large one.
    pub(super) is_small: bool,
}

// SAFETY: the pointers are to memory that the ring owns, and whose address does not change when the ring moves.
unsafe impl Send for Ring {}
// SAFETY: the header and the account consist of atomics; for the buffers see `Buffer`.
unsafe impl Sync for Ring {}

impl Ring {
    pub(super) fn new(
        config: &Channel,
        owner: Owner,
        layout: Layout,
        memory: Box<dyn RingMemory>,
        wait_policy: Option<WaitPolicy>,
        now: u64,
    ) -> io::Result<Self> {
        let memory = RingMapping::new(memory, layout, owner)?;
        let header = memory.header();
        let main = (memory.at(layout.main), layout.main_slots);
        let nested = (memory.at(layout.nested), layout.nested_slots);
        let nested_stream = StreamKey { instance: owner.stream.instance + 1, ..owner.stream };
        // SAFETY: the layout has separate room for the packets of both, and the ring keeps the memory as long as the buffers; it is for
        // exclusive use (the contract of RingMemory). Packet sizes are multiples of 8, and `Channel::check` has made sure that they are
        // large enough.
        let (main, nested) = unsafe {
            (
                Buffer::new(owner.stream, config.policy, main, &header.main_counters, &header.main_released, now),
                Buffer::new(
                    nested_stream,
                    config.policy,
                    nested,
                    &header.nested_counters,
                    &header.nested_released,
                    now,
                ),
            )
        };
        let (base, account) = (memory.base(), NonNull::from(memory.account()));
        let is_parked = AtomicBool::new(false);
        let main = main.with_wait_policy(wait_policy);
        Ok(Self { main, nested, base, account, memory, is_parked, is_small: false })
    }

    /// The same ring as a small one; its thread continues in a large ring.
    pub(super) fn small(self) -> Self {
        Self { main: self.main.with_growth(), is_small: true, ..self }
    }

    /// The same ring with an owner that wakes the consumer.
    pub(super) fn with_wake_word(self, wake_word: Option<&Arc<WakeWord>>) -> Self {
        Self { main: self.main.with_wake_word(wake_word), nested: self.nested.with_wake_word(wake_word), ..self }
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the memory that the ring owns begins with a header (see `RingMapping::header`).
        unsafe { self.base.cast().as_ref() }
    }

    /// The thread's row of the account: an entry for each event id of the channel.
    pub(super) fn account(&self) -> &[EventCounters] {
        // SAFETY: in the memory that the ring owns.
        unsafe { self.account.as_ref() }
    }

    // -- data plane: the owner ------------------------------------------------------------------------------------------

    pub(super) fn own(&self, tid: u32) {
        failpoint!(RingTaken, self.main.instance());
        self.main.begin_owner();
        self.header().tid.store(tid, Ordering::Relaxed);
        failpoint!(OwnerNamed, self.main.instance());
        self.header().state.own();
        failpoint!(RingOwned, self.main.instance());
    }

    /// Records that the owner will not use the ring any more.
    pub(super) fn end(&self) {
        failpoint!(EndBegun, self.main.instance());
        self.header().state.end();
        failpoint!(RingEnded, self.main.instance());
    }

    /// Closes the owner's packets for the next owner. Returns `false` if only the consumer can do that.
    pub(super) fn close_for_next_owner(&self) -> bool {
        failpoint!(HandOnBegun, self.main.instance());
        let is_closed = self.main.close_for_next_owner() && self.nested.close_for_next_owner();
        failpoint!(HandOnClosed, self.main.instance());
        is_closed
    }

    /// Records that the ring, whose packets are closed, has no owner. The caller then puts it into the pool. The streams continue.
    pub(super) fn hand_on(&self) {
        self.header().state.recycle();
        failpoint!(HandedOn, self.main.instance());
    }

    // -- consumer -------------------------------------------------------------------------------------------------------

    /// Returns whether a thread owns it.
    pub(super) fn is_owned(&self) -> bool {
        self.header().state.is_owned()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.header().state.has_ended()
    }

    /// Returns whether all of its memory is still intact. If not, its contents are meaningless, and it is not used any more.
    pub(super) fn is_whole(&self) -> bool {
        self.memory.is_whole()
    }

    /// Prepares the ring of an ended thread for another one: closes its open packets; the streams continue.
    pub(super) fn recycle(&self) {
        failpoint!(RecycleBegun, self.main.instance());
        self.flush();
        failpoint!(RecycleClosed, self.main.instance());
        self.header().state.recycle();
        failpoint!(RingSpare, self.main.instance());
    }

    /// Returns whether the consumer is done with all packets.
    pub(super) fn is_drained(&self) -> bool {
        self.buffers().into_iter().all(|buffer| buffer.closed_packets().is_empty())
    }

    /// Returns the memory of the packets to the system, if they are all drained; counters and streams continue. The ring has no owner, and no thread
    /// can take it. Returns `false` if it stays unchanged.
    pub(super) fn park(&self) -> bool {
        self.flush();
        if !self.is_drained() {
            return false;
        }
        self.buffers().into_iter().for_each(Buffer::forget_empty_packet);
        let is_parked = self.memory.give_back_packets().is_ok();
        if is_parked {
            self.is_parked.store(true, Ordering::Relaxed);
            self.header().state.recycle();
        }
        is_parked
    }

    pub(super) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Relaxed)
    }

    /// Takes the memory of the packets back.
    pub(super) fn unpark(&self) -> io::Result<()> {
        self.memory.take_back_packets()?;
        self.is_parked.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Closes open packets. The owner is outside of any event, or has ended.
    pub(super) fn flush(&self) {
        self.main.flush();
        self.nested.flush();
    }

    pub(super) fn buffers(&self) -> [&Buffer; 2] {
        [&self.main, &self.nested]
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
    use crate::channel::account::Loss;
    use crate::channel::memory::{AnonymousMemory, MemorySource, RingRequest};
    use crate::channel::packet_header::HEADER_SIZE;
    use crate::field::Text;

    fn ring() -> Ring {
        let config = Channel::discard(8 * 4096);
        let layout = Layout::of_ring(&config, config.ring_size, 1);
        let memory = AnonymousMemory.ring_memory(RingRequest::new("test", 0, Some(0), layout.size)).expect("memory");
        let owner = Owner { stream: StreamKey::default(), policy: config.policy, start: 100 };
        Ring::new(&config, owner, layout, memory, None, 100).expect("large enough")
    }

    /// Records an event, or counts it as lost.
    fn record(ring: &Ring, time: u64, value: u64) {
        assert!(ring.record(ring.event(0), 0, time, &(value, ())), "the ring is not full");
    }

    /// A signal handler that interrupts a write finds the main buffer in use; a handler that interrupts that handler finds both in use.
    #[test]
    fn signal_handlers_write_to_the_nested_buffer() {
        let ring = ring();
        ring.main.interrupted(|| {
            record(&ring, 200, 1);
            ring.nested.interrupted(|| record(&ring, 300, 2));
        });
        record(&ring, 400, 3);
        let event = ring.event(0);
        assert_eq!((event.recorded.get(), event.lost(Loss::Nested).get()), (2, 1));
        let [main, nested] = ring.buffers().map(Buffer::account);
        assert_eq!((main.recorded, main.discarded), (1, 0));
        assert_eq!(
            (nested.recorded, nested.discarded),
            (1, 1),
            "the loss is counted for the buffer that refused the event"
        );
    }

    /// The time of an event is earlier than the last record's if a handler has recorded one since the clock was read.
    #[test]
    fn a_time_that_goes_back_is_clamped_and_counted() {
        let ring = ring();
        record(&ring, 500, 1);
        record(&ring, 400, 2);
        assert_eq!(ring.main.account().clamped, 1);
        ring.flush();
        let packets = ring.main.closed_packets();
        // SAFETY: the packet is closed and not released.
        let (bytes, _, _) = unsafe { ring.main.packet(packets.start) };
        let time = |offset: usize| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes")) >> 16;
        assert_eq!((time(96), time(96 + 16)), (500, 500));
    }

    /// A site may give the time of an event. An event whose time is too late for the open packet leaves its room to earlier ones.
    #[test]
    fn a_full_ring_keeps_the_room_of_its_open_packet() {
        let ring = ring();
        let text = "x".repeat(1000);
        let record = |time: u64, size: usize| ring.record(ring.event(0), 0, time, &(Text(&text[..size]), ()));
        assert!((0..1_000_000).any(|n| !record(200 + n, 1000)), "the ring gets full");
        let released = &ring.header().main_released;
        for time in [300, u64::MAX >> 16] {
            assert!(!record(time, 1000) && ring.main.is_still_full_for(1000, released));
            assert!(!ring.main.is_still_full_for(16, released), "a small record fits, at {time}");
        }
        assert!(!record(u64::MAX >> 16, 1), "too late for the open packet");
        assert!(!ring.main.is_still_full_for(16, released) && record(10_000, 1));
    }

    /// A consumer in another process can store any position: a packet that was not taken is never overwritten.
    #[test]
    fn a_position_beyond_what_is_closed_frees_nothing() {
        let ring = ring();
        let fill = |from: u64| {
            let is_recorded = |n: &u64| ring.record(ring.event(0), 0, 200 + n, &(*n, ()));
            (from..from + 1_000_000).take_while(is_recorded).count() as u64
        };
        let recorded = fill(0);
        let [main, _] = ring.buffers();
        let closed = main.closed_packets();
        assert_eq!(closed, 0..7, "the eighth is open");
        assert!(main.is_still_full());
        for invalid in [8, u64::MAX] {
            main.release(invalid);
            assert_eq!(fill(recorded), 0, "{invalid}");
            assert!(!main.is_still_full(), "the position becomes valid when the eighth is closed, or not");
            assert!(main.waiting_percent() <= 100);
        }
        // SAFETY: the packet is closed and not released.
        let (bytes, before, after) = unsafe { main.packet(0) };
        assert_eq!((bytes.len() > HEADER_SIZE, before, after > 0), (true, 0, true));
        main.release(1);
        assert!(fill(recorded) > 0, "one slot is free");
    }
}
