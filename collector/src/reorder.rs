//! Puts the packets of one stream into order and detects which are missing. Has no socket, and callers pass the time.
//!
//! Each packet carries its number, `seq`, and the number of the packet sent before it, `prev`. Numbers between the two were never sent: the sender or
//! its ring dropped those packets, and nothing waits for them. n is the lowest number that is neither stored nor given up:
//!
//! ```text
//!   packet (s, p)   s < n, or queued ────────▶ late or a duplicate: dropped, counted
//!                   p is none, or p < n ─────▶ leaves; n = s + 1; the queue is checked again
//!                   otherwise ───────────────▶ queued behind a gap, [n, p] or [s' + 1, p] with s' queued before it
//!
//!   gap:  new ──delay, or `packets` queued──▶ requested ──every RETRY──▶ requested again
//!          │                                     │
//!          └────── its packets arrive or are gone ──▶ closed
//!         gone: GONE_TIME after the sender has reported that, because the network may still deliver them
//!         given up, n = p + 1: the first gap, if it was requested and nothing was sent again for `time`, or more than `bytes` are queued
//! ```
//!
//! A gap's age is counted from the arrival of the packet behind it. After the last packet sent there is no such packet; a synchronisation message
//! gives the last number instead. Over TCP that message can overtake packets that wait in buffers while the disk is slow. So such a gap is requested
//! only after the data connection has been silent for a while, and only packets that the sender no longer has are given up ([`Limits::over_tcp`]). A
//! packet that arrives after it was given up is late and dropped, so packets always leave in order. The ranges given up are kept until they are
//! reported to the sender, which counts their events as lost.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tracepoint_wire::stream::NO_SEQ;

/// Interval at which the same packets are requested again.
const RETRY: Duration = Duration::from_millis(100);
/// Time that packets are still waited for after the sender reported them as gone.
const GONE_TIME: Duration = Duration::from_millis(200);
/// Maximum number of ranges remembered as gone, and maximum number requested at once.
const MAX_RANGES: usize = 256;
/// Maximum number of ranges given up and not reported to the sender, which may be disconnected. Further ones only appear in the totals at the end.
pub(crate) const MAX_LOST: usize = 1024;

/// Limits on how long a gap is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of packets behind a gap at which it is requested at once.
    pub(crate) packets: usize,
    /// Bytes in the queue above which the first gap is given up.
    pub(crate) bytes: u64,
    /// Time without an answer after which requested packets are given up.
    pub(crate) time: Duration,
    /// Time before a gap is requested, because networks reorder.
    pub(crate) delay: Duration,
    /// The same for a gap after the last packet received.
    pub(crate) end_delay: Duration,
}

impl Limits {
    /// The limits when nothing more arrives: everything missing is given up at once.
    #[cfg(feature = "nats")]
    pub(crate) fn at_once(&self) -> Self {
        Self { time: Duration::ZERO, delay: Duration::ZERO, end_delay: Duration::ZERO, ..*self }
    }

    /// The limits for TCP, which loses nothing but may deliver late. `silent` is the time since when the data connection has been silent, if it is.
    pub(crate) fn over_tcp(&self, silent: Option<Instant>, now: Instant) -> Self {
        let is_silent = silent.is_some_and(|since| now.saturating_duration_since(since) >= self.time);
        let end_delay = if is_silent { self.time } else { Duration::MAX };
        Self { time: Duration::MAX, end_delay, ..*self }
    }
}

/// When a gap appeared, and when it was requested first and last.
#[derive(Clone, Copy, Debug)]
struct Gap {
    since: Instant,
    asked: Option<(Instant, Instant)>,
}

impl Gap {
    const fn new(since: Instant) -> Self {
        Self { since, asked: None }
    }

    /// Returns whether the gap is to be requested now, and records the request.
    fn asks(&mut self, now: Instant, delay: Duration) -> bool {
        let (first, due) = match self.asked {
            None => (now, now.saturating_duration_since(self.since) >= delay),
            Some((first, last)) => (first, now.saturating_duration_since(last) >= RETRY),
        };
        if due {
            self.asked = Some((first, now));
        }
        due
    }

    /// Returns whether `time` has passed since the first request and the last answer.
    fn is_over(&self, now: Instant, time: Duration, answered: Option<Instant>) -> bool {
        let waited = |(first, _)| now.saturating_duration_since(answered.map_or(first, |answered| first.max(answered)));
        self.asked.is_some_and(|asked| waited(asked) >= time)
    }
}

#[derive(Debug)]
struct QueueEntry<P> {
    packet: P,
    prev: u64,
    size: u64,
    gap: Gap,
}

/// The reorder queue of a stream.
#[derive(Debug)]
pub(crate) struct Reorder<P> {
    next: u64,
    queue: BTreeMap<u64, QueueEntry<P>>,
    /// Total size of the queued packets.
    bytes: u64,
    /// The highest number known to be sent, from a synchronisation message, and the gap before it.
    last: Option<(u64, Gap)>,
    /// When a part of a packet was last sent again.
    answered: Option<Instant>,
    /// Ranges that the sender no longer has, by first number: the last number, and when that was reported.
    gone: BTreeMap<u64, (u64, Instant)>,
    /// Ranges given up and not yet reported to the sender, as first and last number, in order.
    pub(crate) lost: VecDeque<(u64, u64)>,
    /// Packets that arrived late or twice.
    pub(crate) late: u64,
    /// Gaps that were given up.
    pub(crate) given_up: u64,
}

impl<P> Reorder<P> {
    /// Creates the queue of a stream whose packets below `next` are stored.
    pub(crate) const fn new(next: u64) -> Self {
        Self {
            next,
            queue: BTreeMap::new(),
            bytes: 0,
            last: None,
            answered: None,
            gone: BTreeMap::new(),
            lost: VecDeque::new(),
            late: 0,
            given_up: 0,
        }
    }

    /// Returns the lowest number that has neither left nor been given up.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns whether this packet is still wanted.
    pub(crate) fn wants(&self, seq: u64) -> bool {
        seq >= self.next && !self.queue.contains_key(&seq)
    }

    /// Adds a packet. Call [`pop`](Self::pop) for those that can leave.
    pub(crate) fn push(&mut self, seq: u64, prev: u64, size: u64, packet: P, now: Instant) {
        if seq == NO_SEQ || !self.wants(seq) {
            self.late += 1;
            return;
        }
        self.bytes += size;
        self.queue.insert(seq, QueueEntry { packet, prev, size, gap: Gap::new(now) });
    }

    /// Returns the next packet that has no gap before it, and its number.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(u64, P)> {
        self.pass_gone(now);
        let first = self.queue.first_entry()?;
        if is_gap(self.next, first.get().prev) {
            return None;
        }
        let (seq, queued) = first.remove_entry();
        self.bytes -= queued.size;
        self.next = seq + 1;
        Some((seq, queued.packet))
    }

    /// Records that the sender has sent packets up to `last`; [`NO_SEQ`] means none.
    pub(crate) fn sent_up_to(&mut self, last: u64, now: Instant) {
        if last != NO_SEQ && self.last.is_none_or(|(known, _)| last > known) {
            self.last = Some((last, Gap::new(now)));
        }
    }

    /// Records that part of a wanted packet was sent again. Under a bandwidth cap the answer to one request takes as long as everything requested.
    pub(crate) const fn answered(&mut self, now: Instant) {
        self.answered = Some(now);
    }

    /// Records that the sender no longer has these packets.
    pub(crate) fn gone(&mut self, first: u64, last: u64, now: Instant) {
        if self.gone.len() < MAX_RANGES && last >= self.next && last != NO_SEQ {
            let (known, _) = self.gone.entry(first.max(self.next)).or_insert((last, now));
            *known = last.max(*known);
        }
    }

    /// Skips numbers that are gone.
    fn pass_gone(&mut self, now: Instant) {
        while let Some(range) = self.gone.first_entry().filter(|range| *range.key() <= self.next) {
            let (last, since) = *range.get();
            if last >= self.next && now.saturating_duration_since(since) < GONE_TIME {
                break;
            }
            range.remove();
            self.pass(last);
        }
        // Queued packets that are skipped here: the sender has contradicted itself.
        while let Some(first) = self.queue.first_entry().filter(|first| *first.key() < self.next) {
            self.bytes -= first.remove().size;
            self.late += 1;
        }
    }

    /// Gives up everything missing up to `last`.
    fn pass(&mut self, last: u64) {
        if last < self.next {
            return;
        }
        if let Some((_, end)) = self.lost.back_mut().filter(|(_, end)| *end + 1 == self.next) {
            *end = last;
        } else if self.lost.len() < MAX_LOST {
            self.lost.push_back((self.next, last));
        }
        self.next = last + 1;
    }

    /// Returns whether a packet was given up and not yet reported to the sender.
    pub(crate) fn has_given_up(&self, seq: u64) -> bool {
        self.lost.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// Queues ranges to be reported to the sender once more, before the ones not reported yet.
    pub(crate) fn tell_again(&mut self, mut told: VecDeque<(u64, u64)>) {
        told.append(&mut self.lost);
        self.lost = told;
    }

    /// Returns whether something is missing, so that timeouts matter.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || self.last.is_some_and(|(last, _)| last >= self.next)
    }

    /// Returns whether every packet sent has left or was given up.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_waiting()
    }

    /// Handles timeouts: appends the ranges to request, and gives up the first gap if it has waited too long. Returns whether packets may leave now.
    pub(crate) fn tick(&mut self, now: Instant, limits: &Limits, ask: &mut Vec<(u64, u64)>) -> bool {
        let delay = if self.queue.len() >= limits.packets { Duration::ZERO } else { limits.delay };
        let mut from = self.next;
        for (seq, queued) in &mut self.queue {
            if is_gap(from, queued.prev) && ask.len() < MAX_RANGES && queued.gap.asks(now, delay) {
                ask.push((from, queued.prev));
            }
            from = seq + 1;
        }
        if let Some((last, gap)) = self.last.as_mut().filter(|(last, _)| *last >= from)
            && ask.len() < MAX_RANGES
            && gap.asks(now, limits.end_delay)
        {
            ask.push((from, *last));
        }
        let is_full = self.bytes > limits.bytes;
        let is_over = |gap: &Gap| gap.is_over(now, limits.time, self.answered);
        let upto = match self.queue.first_key_value() {
            Some((_, first)) if is_gap(self.next, first.prev) => (is_full || is_over(&first.gap)).then_some(first.prev),
            Some(_) => None,
            None => self.last.and_then(|(last, gap)| (last >= self.next && is_over(&gap)).then_some(last)),
        };
        if let Some(last) = upto {
            self.pass(last);
            self.given_up += 1;
        }
        upto.is_some()
    }

    /// Gives up all gaps at the end of the stream, and returns the remaining packets.
    pub(crate) fn finish(&mut self) -> Vec<(u64, P)> {
        let queue = std::mem::take(&mut self.queue);
        self.bytes = 0;
        let last = self.last.map(|(last, _)| last + 1);
        let out: Vec<_> = queue.into_iter().map(|(seq, queued)| (seq, queued.packet)).collect();
        self.next = out.last().map(|(seq, _)| seq + 1).into_iter().chain(last).fold(self.next, u64::max);
        out
    }
}

/// Returns whether packets from `next` to `prev` are missing.
const fn is_gap(next: u64, prev: u64) -> bool {
    prev != NO_SEQ && prev >= next
}
