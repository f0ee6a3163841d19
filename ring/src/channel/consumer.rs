//! The consumer's side of a channel: take closed packets, keep the pool filled, and at the end close what is open.
//!
//! One thread drains a channel at a time, or closes its packets from outside: a lock of its own sees to that. It is held while packets
//! are handed out, so that whoever takes them must not drain or maintain the same channel.

use super::buffer::Buffer;
use super::config::Policy;
use super::header::Layout;
use super::memory::RingRequest;
use super::open::{OpenChannel, RINGLESS_INSTANCE};
use super::packet::{HEADER_SIZE, Opening, empty_packet};
use super::ring::Ring;
use super::wait_policy::{ConsumerGuard, WaitPolicy};
use crate::clock;
use crate::thread;
use crate::update;
use std::fmt;
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// How many rings are made in a round for a channel that began with fewer than it shall have: it is drained as well meanwhile.
const AT_A_TIME: usize = 2;

/// Which stream of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// The channel's stream class id.
    pub class: u32,
    /// The stream's instance number; `u32::MAX` for the stream of events that had no ring.
    pub instance: u64,
}

/// A whole packet: CTF from its first byte to its last.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The stream that it belongs to.
    pub stream: StreamId,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// How many records the stream had before it.
    pub events_before: u64,
    /// How many records the stream has up to its end.
    pub events_after: u64,
}

impl OpenChannel {
    /// Fills the pool and makes the rings of ended threads ready again. Called regularly by whoever drains.
    ///
    /// # Errors
    ///
    /// If there is no memory for another ring; the channel goes on with those that it has.
    pub fn maintain(&self) -> io::Result<()> {
        if !self.attachment.is_attached() {
            return Ok(());
        }
        // Lists and probes that were replaced inside probes are freed by the next change outside; here, at the latest.
        if update::has_deferred() {
            self.free_deferred();
        }
        // Relaxed: whoever does not see it yet makes fewer rings, and comes again.
        let most = if self.was_filled.load(Ordering::Relaxed) { usize::MAX } else { AT_A_TIME };
        self.supply(most)
    }

    /// Makes the rings with which the channel begins.
    pub(super) fn supply_at_first(&self) -> io::Result<()> {
        self.supply(self.config.at_first.max(1))
    }

    /// Puts so many rings into the pool at most.
    fn supply(&self, most: usize) -> io::Result<()> {
        // Recycling closes packets, as `flush` does, and only one may do that at a time.
        let _draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        let supplied = self.fill_pool(most);
        self.unsupplied.store(self.pool.missing(), Ordering::Relaxed);
        if !matches!(supplied, Ok(count) if count == most) {
            self.was_filled.store(true, Ordering::Relaxed);
        }
        supplied.map(drop)
    }

    /// Fills the pool, by so many rings at most: by how many. The draining lock is held.
    fn fill_pool(&self, most: usize) -> io::Result<usize> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        self.give_up_broken(&rings);
        let most = self.pool.missing().min(most);
        let mut wanted = most;
        if wanted == 0 {
            return Ok(0);
        }
        // Under overwrite the rings of ended threads keep their history as long as new ones may be made.
        let whole = rings.iter().filter(|ring| ring.is_whole()).count();
        let may_make = self.config.max_rings.saturating_sub(whole);
        if !Ring::keeps_history(&self.config) || may_make < wanted {
            for ring in rings.iter() {
                if wanted > 0 && ring.is_whole() && ring.has_ended() {
                    ring.recycle();
                    wanted -= usize::from(self.pool.put(Arc::as_ptr(ring)));
                    failpoint!(RingPooled, ring.buffers()[0].instance());
                }
            }
        }
        for _ in 0..wanted.min(may_make) {
            let index = rings.len() as u64;
            let size = Layout::of_ring(&self.config, self.max_events()).size;
            let memory = self.source.ring_memory(RingRequest::new(self.name(), self.class, Some(index), size))?;
            let owner = self.owner(2 * index);
            let ring = Ring::new(&self.config, owner, self.max_events(), memory, self.wait_policy(), clock::now())?;
            let ring = Arc::new(ring);
            self.pool.put(Arc::as_ptr(&ring));
            rings.push(ring);
            wanted -= 1;
        }
        Ok(most - wanted)
    }

    /// Says that somebody drains the channel regularly from here on, until the answer is dropped: under [`Policy::Wait`] events wait for
    /// that.
    pub fn register_consumer(&self) -> ConsumerGuard {
        self.consumers.register()
    }

    /// Has threads whose ring's memory was lost take another one at their next event, and nobody one that is lost.
    fn give_up_broken(&self, rings: &[Arc<Ring>]) {
        for ring in rings.iter().filter(|ring| !ring.is_whole()) {
            let broken = Arc::as_ptr(ring).cast_mut();
            self.pool.remove(broken);
            for place in self.attachment.rings() {
                // Relaxed, as all of the table: the thread that finds null here takes a ring from the pool, by L2; the one that has the
                // old ring in hand may use it, which lives as long as the channel.
                let _ = place.compare_exchange(broken, null_mut(), Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// How much somebody who drains is wanted, in percent: of the fullest ring the part that is closed and waits, or of the spare rings
    /// the part that was taken since the last [`maintain`](Self::maintain). A ring under [`Policy::Overwrite`] never waits.
    ///
    /// Costs a look at each ring.
    pub fn fullness(&self) -> u32 {
        let taken = self.spares_taken();
        if !self.attachment.is_attached() || self.config.policy == Policy::Overwrite {
            return taken;
        }
        let rings = self.all_rings();
        let whole = rings.iter().filter(|ring| ring.is_whole());
        whole.flat_map(|ring| ring.buffers()).map(Buffer::waiting_percent).max().unwrap_or(0).max(taken)
    }

    /// How much [`maintain`](Self::maintain) is wanted, in percent: of the spare rings the part that was taken since the last time.
    pub fn spares_taken(&self) -> u32 {
        if !self.attachment.is_attached() {
            return 0;
        }
        let taken = self.pool.missing().saturating_sub(self.unsupplied.load(Ordering::Relaxed));
        (taken * 100 / self.pool.capacity().max(1)) as u32
    }

    /// Hands every closed packet to `take`, oldest first in each stream, and frees its place in the ring.
    ///
    /// Does nothing under [`Policy::Overwrite`], whose rings are drained at the end.
    pub fn drain(&self, mut take: impl FnMut(Packet<'_>)) {
        if self.config.policy != Policy::Overwrite && self.attachment.is_attached() {
            self.drain_closed(&mut take);
        }
    }

    /// Closes the packets that hold a record and were begun before `before` (see [`crate::clock`]), whatever their owners do: an idle
    /// thread's packet reaches the sinks by the next [`drain`](Self::drain). That of a thread that is writing just now is closed by the
    /// thread itself, at its next event, or by the next call.
    ///
    /// Costs one `membarrier` if there is such a packet, or a grace period where there is none. Does nothing if the kernel refuses it by
    /// now, nor in a forked child.
    pub fn flush(&self, before: u64) {
        if !self.attachment.is_attached() {
            return;
        }
        let _draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        let rings = self.all_rings();
        let requested: Vec<_> =
            rings.iter().flat_map(|ring| ring.buffers()).filter(|buffer| buffer.request_flush(before)).collect();
        // F2: pairs with the fence in `FlushHandshake::enter`.
        if !requested.is_empty() && self.fence_owners() {
            requested.into_iter().for_each(Buffer::try_flush);
        }
    }

    /// Frees what was replaced inside probes, which takes a grace period. Where owners may wait for the drain inside a section, the two would
    /// wait for each other: another thread frees it. Without one it is left for a later round.
    fn free_deferred(&self) {
        let free = || update::retire(Vec::new());
        if self.config.policy != Policy::Wait {
            return free();
        }
        let freeing = std::thread::Builder::new().name("tracepoint-free".to_owned()).spawn(move || {
            thread::never_trace_this_thread();
            free();
        });
        drop(freeing);
    }

    /// F2, for which nobody must wait who is inside a section himself, where that takes a grace period.
    fn fence_owners(&self) -> bool {
        if crate::membarrier::is_asymmetric() {
            thread::fence_owners()
        } else {
            self.consumers.while_waiting(thread::fence_owners)
        }
    }

    fn drain_closed(&self, take: &mut dyn FnMut(Packet<'_>)) {
        let _draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        for ring in self.all_rings().iter().filter(|ring| ring.is_whole()) {
            for buffer in ring.buffers() {
                self.drain_buffer(buffer, take);
            }
        }
    }

    fn wait_policy(&self) -> Option<WaitPolicy> {
        (self.config.policy == Policy::Wait).then(|| WaitPolicy::new(self.config.max_wait, &self.consumers))
    }

    fn all_rings(&self) -> Vec<Arc<Ring>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn drain_buffer(&self, buffer: &Buffer, take: &mut dyn FnMut(Packet<'_>)) {
        let stream = StreamId { class: self.class, instance: buffer.instance() };
        for number in buffer.closed_packets() {
            // SAFETY: the number is of a closed packet that is not released yet, and the draining lock is held. Under overwrite
            // this runs from `finish` only, when the owners are outside.
            let (bytes, events_before, events_after) = unsafe { buffer.packet(number) };
            // Memory that was lost just now: that is no packet any more.
            if bytes.len() < HEADER_SIZE || events_before > events_after {
                return;
            }
            failpoint!(DrainBegun, stream.instance);
            take(Packet { stream, bytes, events_before, events_after });
            failpoint!(DrainTaken, stream.instance);
            buffer.release(number + 1);
            failpoint!(DrainReleased, stream.instance);
        }
    }

    /// The empty packet with which the stream begins.
    pub fn first_packet(&self, stream: StreamId) -> Vec<u8> {
        empty_packet(&self.stream(stream.instance), Opening::empty(self.start), 0)
    }

    /// Ends the recording: waits for a grace period, drains everything, the open packets included, then hands out the last packet of
    /// every stream that was used, an empty one with the final counts. Nobody can subscribe to the channel afterwards.
    ///
    /// # Errors
    ///
    /// If somebody is subscribed still, or if it cannot be known that nobody is writing; nothing is drained then. If memory of a ring
    /// was lost (see [`RingMemory::is_whole`](super::RingMemory::is_whole)); all others are drained.
    pub fn finish(&self, mut take: impl FnMut(Packet<'_>)) -> Result<(), FinishError> {
        let rings = self.close_rings()?;
        let end = clock::now();
        self.drain_closed(&mut take);
        let whole = rings.iter().filter(|ring| ring.is_whole());
        for buffer in whole.flat_map(|ring| ring.buffers()).filter(|buffer| buffer.is_used()) {
            let account = buffer.account();
            let bytes = buffer.last_packet(end);
            let stream = StreamId { class: self.class, instance: buffer.instance() };
            take(Packet { stream, bytes: &bytes, events_before: account.recorded, events_after: account.recorded });
        }
        if self.ringless_discarded() > 0 {
            let stream = StreamId { class: self.class, instance: RINGLESS_INSTANCE };
            let opening = Opening { seq_num: 1, ..Opening::empty(end) };
            let bytes = empty_packet(&self.stream(stream.instance), opening, self.ringless_discarded());
            take(Packet { stream, bytes: &bytes, events_before: 0, events_after: 0 });
        }
        self.insist_on_whole(&rings)
    }

    /// Ends the recording as [`finish`](Self::finish) does, and leaves everything in the rings, all packets closed, to a consumer in
    /// another process.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn seal(&self) -> Result<(), FinishError> {
        let rings = self.close_rings()?;
        self.insist_on_whole(&rings)
    }

    /// Waits until no thread is, or will be, inside a record of this channel, and closes all open packets.
    fn close_rings(&self) -> Result<Vec<Arc<Ring>>, FinishError> {
        if !self.attachment.is_attached() {
            return Err(FinishError::Forked);
        }
        if !self.end_subscriptions() {
            return Err(FinishError::Subscribed);
        }
        if update::in_probe() {
            return Err(FinishError::InsideProbe);
        }
        if !update::wait_for_grace_period() {
            return Err(FinishError::NoGracePeriod);
        }
        // From here on no thread is, or will be, inside a record of this channel: nobody is subscribed, nobody can be again, and
        // whoever found an older list has left its section. So what was the owners' may be touched.
        let rings = self.all_rings();
        // Whoever called `flush` or `maintain` meanwhile has done by now, and finds nothing to close later.
        let _draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        for ring in &rings {
            ring.flush();
        }
        Ok(rings)
    }

    fn insist_on_whole(&self, rings: &[Arc<Ring>]) -> Result<(), FinishError> {
        let is_whole = self.ringless_is_whole() && rings.iter().all(|ring| ring.is_whole());
        if is_whole { Ok(()) } else { Err(FinishError::MemoryLost) }
    }
}

/// Why a channel cannot be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishError {
    /// Somebody is subscribed still: end the subscriptions first.
    Subscribed,
    /// Inside a probe nothing can be waited for.
    InsideProbe,
    /// This process is a fork of the one that opened the channel: its rings are not here.
    Forked,
    /// The kernel refuses the fence that a grace period begins with, which it allowed before: somebody may be writing.
    NoGracePeriod,
    /// Memory of a ring was lost, and with it what the ring held and counted. The other rings were drained.
    MemoryLost,
}

impl fmt::Display for FinishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subscribed => "the channel has subscriptions still: end them first",
            Self::InsideProbe => "a channel cannot be finished inside a probe, which it would have to wait for",
            Self::Forked => "the channel's rings belong to the process that this one was forked from",
            Self::MemoryLost => "memory of a ring was lost, and with it what the ring held and counted",
            Self::NoGracePeriod => "the kernel refuses membarrier, which it allowed before: somebody may be writing",
        })
    }
}

impl std::error::Error for FinishError {}

impl Opening {
    /// A packet without records at `time`, the first of its stream.
    fn empty(time: u64) -> Self {
        Self { time, seq_num: 0, tid: 0, events_before: 0, size: HEADER_SIZE }
    }
}
