//! The header of a ring's memory: the data that another process needs to read the ring. Documented in `docs/format-ring.md`.

pub mod offsets;

use super::account::EventCounters;
use super::config::{Channel, Policy};
use super::memory::{RING_IDENTITY, RingMemory};
use super::ownership::Ownership;
use super::packet_header::StreamKey;
use super::slots::PacketSlots;
use crate::counter::LocalCounter;
use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The first eight bytes of a ring file.
const MAGIC: u64 = u64::from_le_bytes(*b"tp-ring\n");
const VERSION: u32 = 1;
/// The size of the header and the identity that follows it.
pub(super) const HEADER_PAGE: usize = RING_IDENTITY.end;
/// The alignment of the parts.
const PAGE: usize = 4096;

/// The counters of one stream, updated by the ring's owner.
#[derive(Debug)]
#[repr(C)]
pub(super) struct StreamCounters {
    /// Records in this stream since the beginning. Stored by the owner, between reserve and commit.
    pub(super) records: AtomicU64,
    /// Packets that are complete.
    pub(super) closed: AtomicU64,
    pub(super) discarded: LocalCounter,
    pub(super) clamped: LocalCounter,
    pub(super) altered: LocalCounter,
    /// Number of events that waited for room, and the total wait in ns.
    pub(super) waited: LocalCounter,
    pub(super) waited_ns: LocalCounter,
}

impl StreamCounters {
    /// Counts a wait of the ring's owner, if it was one.
    pub(super) fn count_wait(&self, waited: Duration) {
        if !waited.is_zero() {
            self.waited.increment();
            self.waited_ns.add_shared(waited.as_nanos() as u64);
        }
    }

    /// The same for counters that several threads share.
    pub(super) fn count_shared_wait(&self, waited: Duration) {
        if !waited.is_zero() {
            self.waited.add_shared(1);
            self.waited_ns.add_shared(waited.as_nanos() as u64);
        }
    }
}

/// The location of the packets of one stream.
#[derive(Debug)]
#[repr(C)]
struct StreamLayout {
    offset: AtomicU64,
    packet_size: AtomicU64,
    packets: AtomicU64,
}

/// The first bytes of a ring's memory. All fields are atomic, because other processes read them at any time.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    page_size: AtomicU32,
    file_size: AtomicU64,
    uuid: [AtomicU64; 2],
    class: AtomicU32,
    policy: AtomicU32,
    instance: AtomicU64,
    events: AtomicU64,
    account_offset: AtomicU64,
    account_entry_size: AtomicU64,
    network_offset: AtomicU64,
    start: AtomicU64,
    main: StreamLayout,
    nested: StreamLayout,
    clock_error: AtomicU64,
    /// In the memory of threads without a ring: the number of rings that the channel has created.
    rings: AtomicU64,
    _to_owner: [u64; 12],
    pub(super) state: Ownership,
    pub(super) tid: AtomicU32,
    _to_counters: [u64; 7],
    pub(super) main_counters: StreamCounters,
    _to_nested: [u64; 1],
    pub(super) nested_counters: StreamCounters,
    _to_consumer: [u64; 1],
    pub(super) main_released: AtomicU64,
    pub(super) nested_released: AtomicU64,
    consumer: AtomicU64,
}

const _: () = {
    assert!(offset_of!(Header, uuid) == 24 && offset_of!(Header, instance) == 48 && offset_of!(Header, start) == 88);
    assert!(offset_of!(Header, main) == 96 && offset_of!(Header, nested) == 120);
    assert!(offset_of!(Header, clock_error) == 144 && offset_of!(Header, rings) == 152);
    assert!(offset_of!(Header, state) == 256);
    assert!(offset_of!(Header, main_counters) == 320 && offset_of!(Header, nested_counters) == 384);
    assert!(offset_of!(Header, main_released) == 448 && offset_of!(Header, consumer) == 464);
    assert!(size_of::<Header>() <= RING_IDENTITY.start);
    assert!(size_of::<EventCounters>() == 128);
};

/// The offsets and sizes of the parts of a ring's memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) events: usize,
    pub(super) main: usize,
    pub(super) main_slots: PacketSlots,
    pub(super) nested: usize,
    pub(super) nested_slots: PacketSlots,
    pub(super) size: usize,
}

/// Number of packets of the nested buffer, and the size of each.
const NESTED_PACKETS: usize = 4;
const NESTED_PACKET_SIZE: usize = 4096;
const SMALLEST_NESTED_PACKET: usize = 1024;

impl Layout {
    /// The layout of a ring of `ring_size` bytes of this channel, with `events` event ids.
    pub(super) fn of_ring(config: &Channel, ring_size: usize, events: usize) -> Self {
        let [packet_size, packets] = config.packets_of(ring_size);
        // Proportionally smaller, if the ring is smaller than the first ones.
        let nested = (NESTED_PACKET_SIZE / (config.ring_size / ring_size)).max(SMALLEST_NESTED_PACKET);
        Self::new(events, [packet_size, packets], [packet_size.min(nested), NESTED_PACKETS])
    }

    /// The layout of a small ring of this channel, if it has small rings.
    pub(super) fn of_small_ring(config: &Channel, events: usize) -> Option<Self> {
        let packets = config.small_packets()?;
        Some(Self::new(events, packets, [SMALLEST_NESTED_PACKET, NESTED_PACKETS]))
    }

    /// The layout of the counters of threads without a ring.
    pub(super) fn of_ringless(events: usize) -> Self {
        Self::new(events, [0; 2], [0; 2])
    }

    fn new(
        events: usize,
        [packet_size, packets]: [usize; 2],
        [nested_packet_size, nested_packets]: [usize; 2],
    ) -> Self {
        let slots = |size: usize, count: usize| PacketSlots { size: size as u64, count: count as u64 };
        let main = (HEADER_PAGE + events * size_of::<EventCounters>()).next_multiple_of(PAGE);
        let nested = (main + packets * packet_size).next_multiple_of(PAGE);
        let size = (nested + nested_packets * nested_packet_size).next_multiple_of(PAGE);
        let main_slots = slots(packet_size, packets);
        Self { events, main, main_slots, nested, nested_slots: slots(nested_packet_size, nested_packets), size }
    }
}

/// The contents of a header, except the layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) stream: StreamKey,
    pub(super) policy: Policy,
    pub(super) start: u64,
}

/// A ring's memory with a written header.
pub(super) struct RingMapping {
    memory: Box<dyn RingMemory>,
    layout: Layout,
}

impl RingMapping {
    /// Writes the header.
    pub(super) fn new(memory: Box<dyn RingMemory>, layout: Layout, owner: Owner) -> io::Result<Self> {
        if memory.len() < layout.size || !memory.base().as_ptr().addr().is_multiple_of(PAGE) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "ring memory is too small or not aligned to 4096"));
        }
        let mapped = Self { memory, layout };
        let header = mapped.header();
        let store = |place: &AtomicU64, value: usize| place.store((value as u64).to_le(), Ordering::Relaxed);
        header.version.store(VERSION.to_le(), Ordering::Relaxed);
        header.page_size.store((HEADER_PAGE as u32).to_le(), Ordering::Relaxed);
        store(&header.file_size, layout.size);
        for (word, bytes) in header.uuid.iter().zip(owner.stream.uuid.chunks_exact(8)) {
            word.store(u64::from_le_bytes(std::array::from_fn(|n| bytes[n])).to_le(), Ordering::Relaxed);
        }
        header.class.store(owner.stream.class.to_le(), Ordering::Relaxed);
        let policy: u32 = match owner.policy {
            Policy::Discard => 0,
            Policy::Overwrite => 1,
            Policy::Wait => 2,
        };
        header.policy.store(policy.to_le(), Ordering::Relaxed);
        header.instance.store(owner.stream.instance.to_le(), Ordering::Relaxed);
        store(&header.events, layout.events);
        store(&header.account_offset, HEADER_PAGE);
        store(&header.account_entry_size, size_of::<EventCounters>());
        header.start.store(owner.start.to_le(), Ordering::Relaxed);
        for (stream, offset, slots) in
            [(&header.main, layout.main, layout.main_slots), (&header.nested, layout.nested, layout.nested_slots)]
        {
            store(&stream.offset, offset);
            stream.packet_size.store(slots.size.to_le(), Ordering::Relaxed);
            stream.packets.store(slots.count.to_le(), Ordering::Relaxed);
        }
        header.consumer.store(u64::from(std::process::id()).to_le(), Ordering::Relaxed);
        header.clock_error.store(crate::clock::error_bound().to_le(), Ordering::Relaxed);
        failpoint!(RingWithoutMagic, owner.stream.instance);
        // H1: Release: the header and the identity are stored before the magic. Its partner is the read of another process, which reads the
        // magic first.
        header.magic.store(MAGIC.to_le(), Ordering::Release);
        failpoint!(RingMade, owner.stream.instance);
        Ok(mapped)
    }

    /// Returns whether all of the memory is still intact.
    pub(super) fn is_whole(&self) -> bool {
        self.memory.is_whole()
    }

    /// The bytes of the packets of both streams: everything after the account.
    fn packets(&self) -> Range<usize> {
        self.layout.main..self.layout.size
    }

    /// Returns the memory of the packets to the system; header and account stay.
    pub(super) fn give_back_packets(&self) -> io::Result<()> {
        self.memory.give_back(self.packets())
    }

    /// Makes the packets resident again.
    pub(super) fn take_back_packets(&self) -> io::Result<()> {
        self.memory.take_back(self.packets())
    }

    /// Publishes the number of rings that the channel has created, in the memory of threads without a ring.
    pub(super) fn count_rings(&self, made: usize) {
        // H2: Release: the header of the last ring is stored before the number. Its partner is the read of another process, which reads the
        // number before it looks for the rings.
        self.header().rings.store((made as u64).to_le(), Ordering::Release);
    }

    /// The start of the memory.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.memory.base()
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the memory is aligned, lives as long as `self`, and is at least as large as the layout, which begins with a header. All
        // byte values are valid for its atomics.
        unsafe { self.memory.base().cast::<Header>().as_ref() }
    }

    /// The counters of the events.
    pub(super) fn account(&self) -> &[EventCounters] {
        // SAFETY: the layout has `events` entries of atomics there, aligned to 4096; otherwise as above.
        unsafe { std::slice::from_raw_parts(self.at(HEADER_PAGE).cast(), self.layout.events) }
    }

    /// The address at an offset of the layout.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.layout.size, "inside the memory");
        // SAFETY: offsets are those of the layout, for which `new` has checked the size of the memory.
        unsafe { self.memory.base().as_ptr().add(offset) }
    }
}
