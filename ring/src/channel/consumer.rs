//! The consumer's side of a channel: takes closed packets, keeps the pool filled, and closes packets of idle threads. `finish` ends it.
//!
//! One thread at a time drains a channel: the lock on `taking` ensures that. It is held while packets are passed to the callback, so the
//! callback must not drain the same channel. The lock on `closing`, under which open packets are closed and rings are supplied, is not held then:
//! another thread may do that while a sink blocks.

use super::buffer::{Buffer, WAKE_AT};
use super::config::Policy;
use super::consumer_presence::ConsumerGuard;
use super::open::OpenChannel;
use super::packet_header::{CHECKSUM, HEADER_SIZE, PacketHeader};
use super::ring::Ring;
use super::wait_policy::WaitPolicy;
use super::wake_word::WakeWord;
use crate::thread;
use crate::update;
use std::io;
use std::sync::{Arc, PoisonError};

/// Identifies a stream of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// The channel's stream class id.
    pub class: u32,
    /// The stream's instance number; `u32::MAX` for the stream of events without a ring.
    pub instance: u64,
}

/// A closed packet in CTF format.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The stream of the packet.
    pub stream: StreamId,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The number of records in the stream before this packet.
    pub events_before: u64,
    /// The number of records in the stream up to the end of this packet.
    pub events_after: u64,
}

/// Percentage of the spare rings taken, from which more are created between the draining of two rings.
const MANY_TAKEN: u32 = 50;

impl OpenChannel {
    /// Keeps spare rings ready, recycles the rings of ended threads, and frees the memory of unused ones. The consumer must call this
    /// regularly.
    ///
    /// # Errors
    ///
    /// If there is no memory for another ring; the channel continues with its existing rings.
    pub fn maintain(&self) -> io::Result<()> {
        if !self.ring_table.is_attached() {
            return Ok(());
        }
        // Lists and probes replaced inside probes are freed by the next change outside of one, or here.
        if update::has_deferred() {
            self.free_deferred();
        }
        self.consumers.observe(|| self.released_packets());
        self.supply()
    }

    /// The part of [`maintain`](Self::maintain) that is urgent while the consumer is in a sink that may block. For another thread, which does
    /// not wait for the sink.
    ///
    /// # Errors
    ///
    /// The same as for [`maintain`](Self::maintain).
    pub fn supply_spares(&self) -> io::Result<()> {
        if self.spares_taken() > 0 { self.supply() } else { Ok(()) }
    }

    /// Registers a consumer, which must drain the channel regularly until the guard is dropped. Under [`Policy::Wait`], events wait only while one is
    /// registered.
    pub fn register_consumer(&self) -> ConsumerGuard {
        self.consumers.register(false)
    }

    /// Registers a consumer in another process, which releases packets whatever this process does: events wait for it also inside other events, in
    /// signal handlers, and during grace periods.
    pub fn register_remote_consumer(&self) -> ConsumerGuard {
        self.consumers.register(true)
    }

    /// Records that the consumer in another process has ended, for good: events that wait for it are lost, and no event waits for it any more.
    pub fn remote_consumer_has_ended(&self) {
        self.consumers.end_remote();
    }

    /// The consumer's sleep word. Events wake the consumer, unless the channel is configured with [`no_wake`](super::Channel::no_wake).
    /// Channels [opened beside](Self::open_beside) one another share the word.
    pub fn wake_word(&self) -> Arc<WakeWord> {
        Arc::clone(&self.wake_word)
    }

    /// The sleep word of a thread of this process that calls [`maintain`](Self::maintain) or [`supply_spares`](Self::supply_spares). A
    /// thread that takes one of the last spare rings wakes it. Channels opened beside one another share the word.
    pub fn supply_wake_word(&self) -> Arc<WakeWord> {
        Arc::clone(&self.supply_wake_word)
    }

    /// The urgency of the consumer's work in percent: the larger of the closed part of the fullest ring, and the part of the spare rings
    /// taken since the last [`maintain`](Self::maintain). Rings under [`Policy::Overwrite`] do not count.
    ///
    /// Reads the counters of each ring.
    pub fn fullness(&self) -> u32 {
        self.fullest().max(self.spares_taken())
    }

    /// The closed part of the fullest ring, in percent; 0 under [`Policy::Overwrite`]. Reads the counters of each ring.
    pub fn fullest(&self) -> u32 {
        if !self.ring_table.is_attached() || self.config.policy == Policy::Overwrite {
            return 0;
        }
        let rings = self.all_rings();
        let whole = rings.iter().filter(|ring| ring.is_whole());
        whole.flat_map(|ring| ring.buffers()).map(Buffer::waiting_percent).max().unwrap_or(0)
    }

    /// Number of events lost before they were in a ring, for any reason. Reads a counter of each ring.
    pub fn discarded(&self) -> u64 {
        if !self.ring_table.is_attached() {
            return 0;
        }
        let rings = self.all_rings();
        let whole = rings.iter().filter(|ring| ring.is_whole());
        whole.flat_map(|ring| ring.buffers()).map(Buffer::discarded).sum::<u64>() + self.ringless_discarded()
    }

    /// Passes every closed packet to `take`, oldest first in each stream, and releases its slot.
    ///
    /// Does nothing under [`Policy::Overwrite`], whose rings are drained at the end.
    pub fn drain(&self, mut take: impl FnMut(Packet<'_>)) {
        if self.config.policy != Policy::Overwrite && self.ring_table.is_attached() {
            self.drain_closed(&mut take, |ring| {
                // A thread whose ring is full may be waiting for this one, or for one that has not been created yet.
                if ring.has_ended() || self.spares_taken() >= MANY_TAKEN {
                    // The next `maintain` reports the same error.
                    let _ = self.supply();
                }
            });
        }
    }

    /// Closes the packets that have a record and were opened before `before` (see [`crate::clock`]), so that the packet of an idle thread
    /// reaches the sinks at the next [`drain`](Self::drain). A thread that is writing at the moment closes its packet itself at its next
    /// event; otherwise the next call does. Returns whether all these packets are closed now.
    ///
    /// If there is such a packet, this costs one `membarrier`, or a grace period on kernels without it. Does nothing if the kernel no longer
    /// provides it, or in a forked child.
    pub fn flush(&self, before: u64) -> bool {
        self.flush_rings(before, |_| true)
    }

    /// The same as [`flush`](Self::flush), but leaves packets open in rings with at least half of their packets waiting for the consumer: closing
    /// another one would bring no event to the sinks earlier, and an almost empty packet takes as much space as a full one. Returns `false` if a
    /// packet was left open.
    pub fn flush_drained(&self, before: u64) -> bool {
        self.flush_rings(before, |buffer| buffer.waiting_percent() < WAKE_AT)
    }

    fn flush_rings(&self, before: u64, is_flushed: impl Fn(&Buffer) -> bool) -> bool {
        if !self.ring_table.is_attached() {
            return false;
        }
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let rings = self.all_rings();
        let old = rings.iter().flat_map(|ring| ring.buffers()).filter(|buffer| buffer.is_open_since(before));
        let (requested, left): (Vec<_>, Vec<_>) = old.partition(|buffer| is_flushed(buffer));
        for buffer in &requested {
            buffer.request_flush();
        }
        // F2: pairs with the fence in `FlushHandshake::enter` (F1).
        let is_fenced = requested.is_empty() || self.fence_owners();
        // Try each of them, even after one that is being written.
        is_fenced && requested.into_iter().filter(|buffer| !buffer.try_flush()).count() == 0 && left.is_empty()
    }

    /// Frees versions replaced inside probes, which takes a grace period. Under the wait policy, owners wait for the consumer inside a section,
    /// so the consumer must not wait for them: another thread does it. If that thread cannot be started, a later round frees them.
    fn free_deferred(&self) {
        let free = || update::retire(Vec::new());
        if self.config.policy != Policy::Wait {
            return free();
        }
        let freeing = std::thread::Builder::new().name("tracepoint-free".to_owned()).spawn(move || {
            thread::leave_inherited_scheduling();
            thread::never_trace_this_thread();
            free();
        });
        drop(freeing);
    }

    /// F2. If this takes a grace period, owners do not wait for this consumer meanwhile, because they are inside a section.
    fn fence_owners(&self) -> bool {
        if crate::membarrier::is_asymmetric() {
            thread::fence_owners()
        } else {
            self.consumers.while_waiting(thread::fence_owners)
        }
    }

    /// Calls `then` after each ring with packets taken.
    pub(super) fn drain_closed(&self, take: &mut dyn FnMut(Packet<'_>), then: impl Fn(&Ring)) {
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        for ring in self.all_rings().iter().filter(|ring| ring.is_whole()) {
            let mut taken = 0;
            for buffer in ring.buffers() {
                taken += self.drain_buffer(buffer, take);
            }
            if taken > 0 {
                then(ring);
            }
        }
    }

    /// Number of packets that consumers have released so far, in rings that still have their memory.
    fn released_packets(&self) -> u64 {
        self.all_rings().iter().filter(|ring| ring.is_whole()).map(|ring| ring.main.released_packets()).sum()
    }

    pub(super) fn wait_policy(&self) -> Option<WaitPolicy> {
        (self.config.policy == Policy::Wait).then(|| WaitPolicy::new(self.config.max_wait, &self.consumers))
    }

    pub(super) fn all_rings(&self) -> Vec<Arc<Ring>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the packets that are closed by now, and returns their number.
    fn drain_buffer(&self, buffer: &Buffer, take: &mut dyn FnMut(Packet<'_>)) -> u64 {
        let stream = StreamId { class: self.class, instance: buffer.instance() };
        let closed = buffer.closed_packets();
        for number in closed.clone() {
            let Some((bytes, events_before, events_after)) = self.leaving_packet(buffer, number) else {
                return number - closed.start;
            };
            failpoint!(DrainBegun, stream.instance);
            take(Packet { stream, bytes, events_before, events_after });
            failpoint!(DrainTaken, stream.instance);
            buffer.release(number + 1);
            self.consumers.progress();
            failpoint!(DrainReleased, stream.instance);
        }
        closed.end.saturating_sub(closed.start)
    }

    /// The bytes of a closed packet, with its checksum, and the numbers of records in the stream before and after it; `None` if it is not a
    /// packet, because the memory has just been lost. The caller holds the lock on `taking`.
    fn leaving_packet<'b>(&self, buffer: &'b Buffer, number: u64) -> Option<(&'b [u8], u64, u64)> {
        // SAFETY: the packet is closed and not released, and the lock on `taking`, which the caller holds for as long as it uses the bytes,
        // excludes other consumers of this process. Under overwrite this runs only from `finish`, when the owners are outside any event.
        let packet = || unsafe { buffer.packet(number) };
        let (bytes, events_before, events_after) = packet();
        if bytes.len() < HEADER_SIZE || events_before > events_after {
            return None;
        }
        if let Some(checksum) = self.checksum.get() {
            let sum = checksum(bytes);
            // SAFETY: as above, and the bytes are not used any more.
            unsafe { buffer.put_checksum(number, sum) };
        }
        Some(packet())
    }

    /// Adds a checksum to each packet that leaves its ring from now on; `of` computes it from the bytes of the packet, with the bytes at [`CHECKSUM`]
    /// taken as zero. The first call is effective. Packets taken by a consumer in another process are not affected.
    pub fn checksum_with(&self, of: fn(&[u8]) -> u32) {
        self.checksum.get_or_init(|| of);
    }

    /// A packet without records, with its checksum.
    pub(super) fn empty_packet(&self, header: &PacketHeader) -> Vec<u8> {
        let mut packet = header.bytes().to_vec();
        if let Some(checksum) = self.checksum.get() {
            let sum = checksum(&packet);
            packet[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
        }
        packet
    }

    /// The empty packet that begins the stream.
    pub fn first_packet(&self, stream: StreamId) -> Vec<u8> {
        self.empty_packet(&PacketHeader::empty(self.stream(stream.instance), self.start))
    }
}
