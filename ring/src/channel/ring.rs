//! The ring of one thread: a buffer for its events, a small one for those of signal handlers that interrupt a write, and the
//! thread's row of the account.

use super::account::{EventCounters, Loss};
use super::buffer::{Buffer, Places, Refused};
use super::config::{Channel, Policy};
use super::header::{HEADER_PAGE, Header, Layout, Mapped, Owner};
use super::memory::RingMemory;
use super::packet::Stream;
use super::wait_policy::WaitPolicy;
use crate::clock::Timestamp;
use crate::field::Fields;
use crate::record::Head;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// One thread's ring.
pub(super) struct Ring {
    main: Buffer,
    nested: Buffer,
    /// Where the memory begins, with the header.
    base: NonNull<u8>,
    account: NonNull<[EventCounters]>,
    /// Keeps the memory of all of these; dropped after them.
    memory: Mapped,
}

// SAFETY: the pointers are to the ring's own memory, which moves with it.
unsafe impl Send for Ring {}
// SAFETY: what they point to is atomic.
unsafe impl Sync for Ring {}

impl Ring {
    pub(super) fn new(
        config: &Channel,
        owner: Owner,
        events: usize,
        memory: Box<dyn RingMemory>,
        wait_policy: Option<WaitPolicy>,
        now: u64,
    ) -> io::Result<Self> {
        let layout = Layout::of_ring(config, events);
        let memory = Mapped::new(memory, layout, owner)?;
        let header = memory.header();
        let stream = |instance| Stream { uuid: owner.uuid, class: owner.class, instance };
        let main = Places { base: memory.at(layout.main), packet_size: layout.packet_size, packets: layout.packets };
        let nested = Places {
            base: memory.at(layout.nested),
            packet_size: layout.nested_packet_size,
            packets: layout.nested_packets,
        };
        // SAFETY: the layout has room for the packets of both, which are apart, and the memory lives in the ring beside them;
        // nobody else uses it (the contract of RingMemory). Packet sizes are multiples of 8, `check` saw to their being large
        // enough.
        let (main, nested) = unsafe {
            (
                Buffer::new(
                    stream(owner.instance),
                    config.policy,
                    main,
                    &header.main_counters,
                    &header.main_released,
                    now,
                ),
                Buffer::new(
                    stream(owner.instance + 1),
                    config.policy,
                    nested,
                    &header.nested_counters,
                    &header.nested_released,
                    now,
                ),
            )
        };
        let (base, account) = (memory.base(), NonNull::from(memory.account()));
        Ok(Self { main: main.waiting(wait_policy), nested, base, account, memory })
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: the memory that the ring keeps begins with one, as `Mapped::header` says.
        unsafe { self.base.cast().as_ref() }
    }

    /// The thread's row of the account: an entry for each event id of the channel.
    #[inline(always)]
    pub(super) fn account(&self) -> &[EventCounters] {
        // SAFETY: in the memory that the ring keeps.
        unsafe { self.account.as_ref() }
    }

    /// The entry of an event id that the channel has given.
    #[inline(always)]
    pub(super) fn event(&self, id: u16) -> &EventCounters {
        debug_assert!(usize::from(id) < self.account().len(), "the channel has given the id");
        // SAFETY: ids are given by the channel, which has as many entries in each account, and `Subscriber::record` refuses others.
        unsafe { self.event_at(Self::entry_of(id)) }
    }

    /// Where the entry of an event id is in a ring's memory, in bytes from its begin.
    pub(super) const fn entry_of(id: u16) -> usize {
        HEADER_PAGE + id as usize * size_of::<EventCounters>()
    }

    /// The entry at a place that [`entry_of`](Self::entry_of) has given.
    ///
    /// # Safety
    ///
    /// The channel has given the id that the place is of.
    #[inline(always)]
    pub(super) unsafe fn event_at(&self, entry: usize) -> &EventCounters {
        // SAFETY: the account stands behind the header's page, with an entry for each id that the channel gives, in the memory that
        // the ring keeps.
        unsafe { self.base.add(entry).cast().as_ref() }
    }

    // -- data plane: the owner ------------------------------------------------------------------------------------------

    pub(super) fn own(&self, tid: u32) {
        failpoint!(RingTaken, self.main.instance());
        self.header().tid.store(tid, Ordering::Relaxed);
        failpoint!(OwnerNamed, self.main.instance());
        self.header().state.own();
        failpoint!(RingOwned, self.main.instance());
    }

    /// The owner is gone for good.
    pub(super) fn end(&self) {
        failpoint!(EndBegun, self.main.instance());
        self.header().state.end();
        failpoint!(RingEnded, self.main.instance());
    }

    /// Records an event, or counts why not. `event` is the entry of `id`.
    #[inline(always)]
    pub(super) fn record<V: Fields>(&self, event: &EventCounters, id: u16, time: u64, values: &V) {
        failpoint!(Fired, self.main.instance());
        if self.main.try_record(Head::new(id, Timestamp::at(time)), values) {
            failpoint!(Left, self.main.instance());
            event.recorded.increment();
        } else {
            // A copy that the compiler takes for another thing, so that the values need not be in memory where this does not happen.
            let values = std::hint::black_box(*values);
            self.record_with_care(id, time, &values);
        }
    }

    /// Counts an event that fires outside any other of the thread, and records it, if nothing stands in the way; else nothing is done that
    /// counts. `event` is its entry.
    #[inline(always)]
    pub(super) fn try_record_outermost<V: Fields>(&self, event: &EventCounters, head: Head, values: &V) -> bool {
        let is_recorded = self.main.try_record_outermost(head, values, || {
            event.count_fired();
            failpoint!(Fired, self.main.instance());
        });
        if is_recorded {
            failpoint!(Left, self.main.instance());
            event.count_recorded();
        }
        is_recorded
    }

    #[cold]
    #[inline(never)]
    fn record_with_care<V: Fields>(&self, id: u16, time: u64, values: &V) {
        let tid = &self.header().tid;
        let (buffer, result) = match self.main.record(tid, id, time, values) {
            Err(Refused::Writing) => match self.nested.record(tid, id, time, values) {
                Ok(()) => (&self.nested, Ok(())),
                // The flusher may have had the main buffer, and be done with it by now.
                refused => match self.main.record(tid, id, time, values) {
                    Err(Refused::Writing) => (&self.nested, refused),
                    result => (&self.main, result),
                },
            },
            result => (&self.main, result),
        };
        match result {
            Ok(()) => self.event(id).recorded.increment(),
            Err(Refused::Lost(reason)) => self.lost_in(buffer, id, reason),
            Err(Refused::Writing) => self.lost_in(buffer, id, Loss::Nested),
        }
    }

    pub(super) fn lost(&self, id: u16, reason: Loss) {
        self.lost_in(&self.main, id, reason);
    }

    fn lost_in(&self, buffer: &Buffer, id: u16, reason: Loss) {
        self.event(id).lost(reason).increment();
        buffer.count_discarded();
    }

    // -- consumer -------------------------------------------------------------------------------------------------------

    pub(super) fn has_ended(&self) -> bool {
        self.header().state.has_ended()
    }

    /// Whether nothing of its memory was lost. If something was, nothing in it means anything, and it is used no further.
    pub(super) fn is_whole(&self) -> bool {
        self.memory.is_whole()
    }

    /// Makes the ring of an ended thread ready for another: its open packets are closed, the streams go on.
    pub(super) fn recycle(&self) {
        failpoint!(RecycleBegun, self.main.instance());
        self.flush();
        failpoint!(RecycleClosed, self.main.instance());
        self.header().state.recycle();
        failpoint!(RingSpare, self.main.instance());
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
    use crate::channel::packet::HEADER_SIZE;

    fn ring() -> Ring {
        let config = Channel::discard(8 * 4096);
        let size = Layout::of_ring(&config, 1).size;
        let memory = AnonymousMemory.ring_memory(RingRequest::new("test", 0, Some(0), size)).expect("memory");
        let owner = Owner { uuid: [1; 16], class: 0, policy: config.policy, instance: 0, start: 100 };
        Ring::new(&config, owner, 1, memory, None, 100).expect("large enough")
    }

    /// A signal handler that interrupts a write finds the main buffer taken; one that interrupts that one finds both taken.
    #[test]
    fn handlers_write_beside_a_write() {
        let ring = ring();
        ring.main.interrupted(|| {
            ring.record(ring.event(0), 0, 200, &(1u64, ()));
            ring.nested.interrupted(|| ring.record(ring.event(0), 0, 300, &(2u64, ())));
        });
        ring.record(ring.event(0), 0, 400, &(3u64, ()));
        let event = ring.event(0);
        assert_eq!((event.recorded.get(), event.lost(Loss::Nested).get()), (2, 1));
        let [main, nested] = ring.buffers().map(Buffer::account);
        assert_eq!((main.recorded, main.discarded), (1, 0));
        assert_eq!((nested.recorded, nested.discarded), (1, 1), "the loss is counted where the event would have gone");
    }

    /// The clock stands behind the last record when a handler recorded after the clock was read.
    #[test]
    fn time_does_not_go_back_and_says_so() {
        let ring = ring();
        ring.record(ring.event(0), 0, 500, &(1u64, ()));
        ring.record(ring.event(0), 0, 400, &(2u64, ()));
        assert_eq!(ring.main.account().clamped, 1);
        ring.flush();
        let packets = ring.main.closed_packets();
        // SAFETY: the packet is closed and not released.
        let (bytes, _, _) = unsafe { ring.main.packet(packets.start) };
        let time = |offset: usize| u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes")) >> 16;
        assert_eq!((time(96), time(96 + 16)), (500, 500));
    }

    /// Whoever takes the packets may be another process, which can store what it likes: nothing that was not taken is written over.
    #[test]
    fn a_position_beyond_what_is_closed_frees_nothing() {
        let ring = ring();
        let fill = |from: u64| {
            let before = ring.event(0).lost(Loss::RingFull).get();
            let is_recorded = |n: &u64| {
                ring.record(ring.event(0), 0, 200 + n, &(*n, ()));
                ring.event(0).lost(Loss::RingFull).get() == before
            };
            (from..from + 1_000_000).take_while(is_recorded).count() as u64
        };
        let recorded = fill(0);
        let [main, _] = ring.buffers();
        let closed = main.closed_packets();
        assert_eq!(closed, 0..7, "the eighth is open");
        for spoilt in [8, u64::MAX] {
            main.release(spoilt);
            assert_eq!(fill(recorded), 0, "{spoilt}");
            assert!(main.waiting_percent() <= 100);
        }
        // SAFETY: the packet is closed and not released.
        let (bytes, before, after) = unsafe { main.packet(0) };
        assert_eq!((bytes.len() > HEADER_SIZE, before, after > 0), (true, 0, true));
        main.release(1);
        assert!(fill(recorded) > 0, "one is free");
    }
}
