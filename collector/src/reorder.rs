//! Puts the packets of one stream into their order, and finds out which are missing. Without a socket and without a clock of its own.
//!
//! Each packet has a number, `seq`, and that of the packet which was sent before it, `prev`. Numbers between the two were never sent: the sender
//! or its ring has dropped these packets on purpose, and nothing waits for them. n is the lowest number that is neither in the file nor
//! given up:
//!
//! ```text
//!   packet (s, p)   s < n, or queued ────────▶ late or a duplicate: dropped, counted
//!                   p is none, or p < n ─────▶ leaves; n = s + 1; the queue is looked at again
//!                   otherwise ───────────────▶ queued behind a gap, [n, p] or [s' + 1, p] with s' queued before it
//!
//!   gap:  new ──delay, or `packets` queued──▶ asked for ──every RETRY──▶ asked for again
//!          │                                     │
//!          └──────── its packets come, or are gone: closed ◀┘
//!         GONE_TIME after the sender has said that they are gone; the network may still have them
//!         the first gap, asked for, and nothing sent again for `time`; or more than `bytes` queued: given up, n = p + 1
//! ```
//!
//! A gap is as old as the arrival of the packet behind it. At the end of what was sent there is no such packet: a synchronisation message says what
//! the last number is. Over TCP that message can overtake the packets, which wait in buffers for as long as the disk is slow: such a gap is asked
//! for when the connection has been silent for a while, and nothing is given up but what the sender does not have ([`Limits::over_tcp`]). What comes after it was given up is late, so nothing that leaves is ever behind its successor. The ranges given up are kept
//! until the sender is told, which counts their events.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tracepoint_wire::stream::NO_SEQ;

/// The time between two requests for the same packets.
const RETRY: Duration = Duration::from_millis(100);
/// How long packets that the sender does not have any more are waited for.
const GONE_TIME: Duration = Duration::from_millis(200);
/// The most ranges of numbers that are remembered as gone, and that are asked for at once.
const MOST_RANGES: usize = 256;
/// The most ranges that were given up and that the sender was not told of: it may not be connected. The sums at the end tell of further ones.
pub(crate) const MOST_LOST: usize = 1024;

/// How long a gap is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Packets behind a gap after which it is asked for at once.
    pub(crate) packets: usize,
    /// Bytes in the queue above which the first gap is given up.
    pub(crate) bytes: u64,
    /// The time without an answer after which packets that were asked for are given up.
    pub(crate) time: Duration,
    /// The time after which a gap is asked for: networks reorder.
    pub(crate) delay: Duration,
    /// The same for a gap at the end.
    pub(crate) end_delay: Duration,
}

impl Limits {
    /// Nothing more comes that was not sent again: what is missing is given up.
    #[cfg(feature = "nats")]
    pub(crate) fn at_once(&self) -> Self {
        Self { time: Duration::ZERO, delay: Duration::ZERO, end_delay: Duration::ZERO, ..*self }
    }

    /// Over TCP, which loses nothing, but delivers late; its connection has been silent since `silent`, `None`: it has not.
    pub(crate) fn over_tcp(&self, silent: Option<Instant>, now: Instant) -> Self {
        let is_silent = silent.is_some_and(|since| now.saturating_duration_since(since) >= self.time);
        let end_delay = if is_silent { self.time } else { Duration::MAX };
        Self { time: Duration::MAX, end_delay, ..*self }
    }
}

/// When a gap appeared, and when it was asked for, first and last.
#[derive(Clone, Copy, Debug)]
struct Gap {
    since: Instant,
    asked: Option<(Instant, Instant)>,
}

impl Gap {
    const fn new(since: Instant) -> Self {
        Self { since, asked: None }
    }

    /// Whether to ask for it now; remembers that.
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

    /// Whether it was asked for and nothing was `answered` for this time.
    fn is_over(&self, now: Instant, time: Duration, answered: Option<Instant>) -> bool {
        let waited = |(first, _)| now.saturating_duration_since(answered.map_or(first, |answered| first.max(answered)));
        self.asked.is_some_and(|asked| waited(asked) >= time)
    }
}

#[derive(Debug)]
struct Queued<P> {
    packet: P,
    prev: u64,
    size: u64,
    gap: Gap,
}

/// The queue of a stream.
#[derive(Debug)]
pub(crate) struct Reorder<P> {
    next: u64,
    queue: BTreeMap<u64, Queued<P>>,
    /// Bytes in the queue.
    bytes: u64,
    /// The highest number that was sent, as far as a message has told, and the gap before it.
    last: Option<(u64, Gap)>,
    /// When a part of a packet was last sent again.
    answered: Option<Instant>,
    /// Ranges that the sender does not have, by their first numbers: the last ones, and since when.
    gone: BTreeMap<u64, (u64, Instant)>,
    /// Ranges that were given up, first and last, and that the sender was not told of; in order.
    lost: VecDeque<(u64, u64)>,
    /// Packets that came late or twice.
    pub(crate) late: u64,
    /// Gaps that were given up.
    pub(crate) given_up: u64,
}

impl<P> Reorder<P> {
    /// A stream of which the numbers below `next` are stored.
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

    /// The lowest number that has not left and was not given up.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next
    }

    /// Whether this packet is still wanted.
    pub(crate) fn wants(&self, seq: u64) -> bool {
        seq >= self.next && !self.queue.contains_key(&seq)
    }

    /// A packet has come. Then [`pop`](Self::pop) what can leave.
    pub(crate) fn push(&mut self, seq: u64, prev: u64, size: u64, packet: P, now: Instant) {
        if seq == NO_SEQ || !self.wants(seq) {
            self.late += 1;
            return;
        }
        self.bytes += size;
        self.queue.insert(seq, Queued { packet, prev, size, gap: Gap::new(now) });
    }

    /// The next packet that nothing is missing before, with its number.
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

    /// The sender has sent packets up to this number; [`NO_SEQ`]: none.
    pub(crate) fn sent_up_to(&mut self, last: u64, now: Instant) {
        if last != NO_SEQ && self.last.is_none_or(|(known, _)| last > known) {
            self.last = Some((last, Gap::new(now)));
        }
    }

    /// A part of a packet that is wanted was sent again. At a cap the answer to one request takes as long as all that was asked for.
    pub(crate) const fn answered(&mut self, now: Instant) {
        self.answered = Some(now);
    }

    /// The sender does not have these packets.
    pub(crate) fn gone(&mut self, first: u64, last: u64, now: Instant) {
        if self.gone.len() < MOST_RANGES && last >= self.next && last != NO_SEQ {
            let (known, _) = self.gone.entry(first.max(self.next)).or_insert((last, now));
            *known = last.max(*known);
        }
    }

    /// Passes over numbers that are gone.
    fn pass_gone(&mut self, now: Instant) {
        while let Some(range) = self.gone.first_entry().filter(|range| *range.key() <= self.next) {
            let (last, since) = *range.get();
            if last >= self.next && now.saturating_duration_since(since) < GONE_TIME {
                break;
            }
            range.remove();
            self.pass(last);
        }
        // Packets that were queued and are passed over: the sender has contradicted itself.
        while let Some(first) = self.queue.first_entry().filter(|first| *first.key() < self.next) {
            self.bytes -= first.remove().size;
            self.late += 1;
        }
    }

    /// Gives up what is missing up to this number.
    fn pass(&mut self, last: u64) {
        if last < self.next {
            return;
        }
        if let Some((_, end)) = self.lost.back_mut().filter(|(_, end)| *end + 1 == self.next) {
            *end = last;
        } else if self.lost.len() < MOST_LOST {
            self.lost.push_back((self.next, last));
        }
        self.next = last + 1;
    }

    /// Whether a packet was given up, and the sender was not told of it yet.
    pub(crate) fn has_given_up(&self, seq: u64) -> bool {
        self.lost.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// The next range that was given up, which the sender is told of by this.
    pub(crate) fn pop_lost(&mut self) -> Option<(u64, u64)> {
        self.lost.pop_front()
    }

    /// The sender is to be told of these ranges again, before those of which it was not told.
    pub(crate) fn tell_again(&mut self, mut told: VecDeque<(u64, u64)>) {
        told.append(&mut self.lost);
        self.lost = told;
    }

    /// Whether something is missing, so that time matters.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || self.last.is_some_and(|(last, _)| last >= self.next)
    }

    /// Whether everything that was sent has left, or was given up.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_waiting()
    }

    /// Time has passed: adds the ranges of numbers to ask for, and gives up what has waited too long. Whether packets may leave now.
    pub(crate) fn tick(&mut self, now: Instant, limits: &Limits, ask: &mut Vec<(u64, u64)>) -> bool {
        let delay = if self.queue.len() >= limits.packets { Duration::ZERO } else { limits.delay };
        let mut from = self.next;
        for (seq, queued) in &mut self.queue {
            if is_gap(from, queued.prev) && ask.len() < MOST_RANGES && queued.gap.asks(now, delay) {
                ask.push((from, queued.prev));
            }
            from = seq + 1;
        }
        if let Some((last, gap)) = self.last.as_mut().filter(|(last, _)| *last >= from) {
            if ask.len() < MOST_RANGES && gap.asks(now, limits.end_delay) {
                ask.push((from, *last));
            }
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

    /// Nothing more comes: all gaps are given up.
    pub(crate) fn finish(&mut self) -> Vec<(u64, P)> {
        let queue = std::mem::take(&mut self.queue);
        self.bytes = 0;
        let last = self.last.map(|(last, _)| last + 1);
        let out: Vec<_> = queue.into_iter().map(|(seq, queued)| (seq, queued.packet)).collect();
        self.next = out.last().map(|(seq, _)| seq + 1).into_iter().chain(last).fold(self.next, u64::max);
        out
    }
}

/// Whether packets from `next` to `prev` are missing.
const fn is_gap(next: u64, prev: u64) -> bool {
    prev != NO_SEQ && prev >= next
}
