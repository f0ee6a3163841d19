//! The end of a channel's recording: threads no longer write, every packet is closed, and the streams end with their final counts.

use super::consumer::{Packet, StreamId};
use super::open::{OpenChannel, RINGLESS_INSTANCE};
use super::packet_header::PacketHeader;
use super::ring::Ring;
use super::slots::sequence_of;
use crate::clock;
use crate::update;
use std::fmt;
use std::sync::{Arc, PoisonError};

impl OpenChannel {
    /// Ends the recording: waits for a grace period, drains all packets, including the open ones, then passes the last packet of every used
    /// stream, an empty one with the final counts. The channel refuses subscriptions afterwards.
    ///
    /// # Errors
    ///
    /// If there are subscriptions, or a grace period is impossible; nothing is drained then. If memory of a ring
    /// was lost (see [`RingMemory::is_whole`](super::RingMemory::is_whole)); all other rings are drained.
    pub fn finish(&self, mut take: impl FnMut(Packet<'_>)) -> Result<(), FinishError> {
        let rings = self.close_rings()?;
        let end = clock::now();
        self.drain_closed(&mut take, |_| ());
        let whole = rings.iter().filter(|ring| ring.is_whole());
        for buffer in whole.flat_map(|ring| ring.buffers()).filter(|buffer| buffer.is_used()) {
            let account = buffer.account();
            let bytes = self.empty_packet(&buffer.last_packet(end));
            let stream = StreamId { class: self.class, instance: buffer.instance() };
            take(Packet { stream, bytes: &bytes, events_before: account.recorded, events_after: account.recorded });
        }
        if self.ringless_discarded() > 0 {
            let stream = StreamId { class: self.class, instance: RINGLESS_INSTANCE };
            let (sequence, discarded) = (sequence_of(0), self.ringless_discarded());
            let last = PacketHeader { sequence, discarded, ..PacketHeader::empty(self.stream(stream.instance), end) };
            let bytes = self.empty_packet(&last);
            take(Packet { stream, bytes: &bytes, events_before: 0, events_after: 0 });
        }
        self.check_whole(&rings)
    }

    /// Ends the recording as [`finish`](Self::finish) does, but leaves all packets, closed, in the rings for a consumer in another process.
    ///
    /// # Errors
    ///
    /// The same as for [`finish`](Self::finish).
    pub fn seal(&self) -> Result<(), FinishError> {
        let rings = self.close_rings()?;
        self.check_whole(&rings)
    }

    /// Waits until no thread records into this channel any more, and closes all open packets.
    fn close_rings(&self) -> Result<Vec<Arc<Ring>>, FinishError> {
        if !self.ring_table.is_attached() {
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
        // From here on no thread records into this channel: there is no subscription, there will be none, and every thread that had found
        // an older list has left its section. So the consumer may access the owners' parts of the rings.
        let rings = self.all_rings();
        // A concurrent `flush` or `maintain` has ended, and a later one finds nothing to close.
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        for ring in &rings {
            ring.flush();
        }
        Ok(rings)
    }

    fn check_whole(&self, rings: &[Arc<Ring>]) -> Result<(), FinishError> {
        let is_whole = self.ringless_is_whole() && rings.iter().all(|ring| ring.is_whole());
        if is_whole { Ok(()) } else { Err(FinishError::MemoryLost) }
    }
}

/// The reason why a channel cannot be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishError {
    /// There are subscriptions: end them first.
    Subscribed,
    /// Called inside a probe, where waiting for a grace period would deadlock.
    InsideProbe,
    /// This process is a fork of the one that opened the channel, and does not map the channel's rings.
    Forked,
    /// The kernel now refuses the fence that a grace period needs: threads may be writing.
    NoGracePeriod,
    /// The memory of a ring was lost, with its records and counters. The other rings were drained.
    MemoryLost,
}

impl fmt::Display for FinishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subscribed => "the channel still has subscriptions: end them first",
            Self::InsideProbe => "a channel cannot be finished inside a probe, because it waits for probes to end",
            Self::Forked => "the channel's rings belong to the process that this one was forked from",
            Self::MemoryLost => "the memory of a ring was lost, with its records and counters",
            Self::NoGracePeriod => {
                "the kernel now refuses membarrier, which it allowed before: threads may still be writing"
            }
        })
    }
}

impl std::error::Error for FinishError {}
