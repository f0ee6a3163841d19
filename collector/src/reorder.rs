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
//!         the first gap, asked for and `time` old since, or more than `bytes` queued: given up, n = p + 1
//! ```
//!
//! A gap is as old as the arrival of the packet behind it. At the end of what was sent there is no such packet: a synchronisation message says what
//! the last number is. What comes after it was given up is late, so nothing that leaves is ever behind its successor.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracepoint_reader::net::stream::NO_SEQ;

/// The time between two requests for the same packets.
const RETRY: Duration = Duration::from_millis(250);
/// How long packets that the sender does not have any more are waited for.
const GONE_TIME: Duration = Duration::from_millis(200);
/// The most ranges of numbers that are remembered as gone, and that are asked for at once.
const MOST_RANGES: usize = 256;

/// How long a gap is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Packets behind a gap after which it is asked for at once.
    pub(crate) packets: usize,
    /// Bytes in the queue above which the first gap is given up.
    pub(crate) bytes: u64,
    /// The time after which packets that were asked for are given up.
    pub(crate) time: Duration,
    /// The time after which a gap is asked for: networks reorder.
    pub(crate) delay: Duration,
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

    fn is_over(&self, now: Instant, time: Duration) -> bool {
        self.asked.is_some_and(|(first, _)| now.saturating_duration_since(first) >= time)
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
    /// Ranges that the sender does not have, by their first numbers: the last ones, and since when.
    gone: BTreeMap<u64, (u64, Instant)>,
    /// Packets that came late or twice.
    pub(crate) late: u64,
    /// Gaps that were given up.
    pub(crate) given_up: u64,
}

impl<P> Reorder<P> {
    /// A stream of which the numbers below `next` are stored.
    pub(crate) const fn new(next: u64) -> Self {
        Self { next, queue: BTreeMap::new(), bytes: 0, last: None, gone: BTreeMap::new(), late: 0, given_up: 0 }
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
            self.next = self.next.max(last + 1);
        }
        // Packets that were queued and are passed over: the sender has contradicted itself.
        while let Some(first) = self.queue.first_entry().filter(|first| *first.key() < self.next) {
            self.bytes -= first.remove().size;
            self.late += 1;
        }
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
            if ask.len() < MOST_RANGES && gap.asks(now, limits.delay) {
                ask.push((from, *last));
            }
        }
        let is_full = self.bytes > limits.bytes;
        let upto = match self.queue.first_key_value() {
            Some((_, first)) if is_gap(self.next, first.prev) => {
                (is_full || first.gap.is_over(now, limits.time)).then_some(first.prev)
            }
            Some(_) => None,
            None => {
                self.last.and_then(|(last, gap)| (last >= self.next && gap.is_over(now, limits.time)).then_some(last))
            }
        };
        if let Some(last) = upto {
            self.next = last + 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { packets: 256, bytes: 1 << 20, time: Duration::from_secs(2), delay: Duration::from_millis(20) };

    fn popped(reorder: &mut Reorder<u64>, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| reorder.pop(now))
            .map(|(seq, packet)| {
                assert_eq!(seq, packet);
                seq
            })
            .collect()
    }

    #[test]
    fn numbers_that_were_never_sent_are_not_waited_for() {
        let (mut reorder, now) = (Reorder::new(0), Instant::now());
        reorder.push(2, NO_SEQ, 1, 2, now);
        reorder.push(5, 2, 1, 5, now);
        assert_eq!(popped(&mut reorder, now), [2, 5]);
        assert!(reorder.is_complete() && reorder.tick(now, &LIMITS, &mut Vec::new()) == false);
        reorder.push(3, 2, 1, 3, now);
        reorder.push(5, 2, 1, 5, now);
        assert_eq!((popped(&mut reorder, now), reorder.late), (vec![], 2));
    }

    #[test]
    fn a_gap_is_asked_for_and_given_up() {
        let (mut reorder, start) = (Reorder::new(0), Instant::now());
        reorder.push(0, NO_SEQ, 1, 0, start);
        reorder.push(4, 3, 1, 4, start);
        reorder.push(7, 6, 1, 7, start);
        assert_eq!(popped(&mut reorder, start + GONE_TIME), [0]);
        let mut asked = Vec::new();
        assert!(!reorder.tick(start, &LIMITS, &mut asked));
        assert_eq!(asked, []);
        let asked_at = start + LIMITS.delay;
        assert!(!reorder.tick(asked_at, &LIMITS, &mut asked));
        assert_eq!(asked, [(1, 3), (5, 6)]);
        reorder.tick(asked_at + RETRY / 2, &LIMITS, &mut asked);
        assert_eq!(asked.len(), 2);
        // Some come, some are gone: the rest of the gap is still waited for.
        reorder.push(2, 0, 1, 2, start);
        reorder.gone(6, 6, start);
        reorder.gone(5, 5, start);
        assert_eq!(popped(&mut reorder, start + GONE_TIME), [2]);
        assert!(reorder.tick(asked_at + LIMITS.time, &LIMITS, &mut asked));
        assert_eq!((popped(&mut reorder, start + GONE_TIME), reorder.given_up), (vec![4, 7], 1));
        reorder.push(3, 2, 1, 3, start);
        assert_eq!((popped(&mut reorder, start + GONE_TIME), reorder.late), (vec![], 1));
    }

    #[test]
    fn a_gap_at_the_end_is_found_by_what_the_sender_tells() {
        let (mut reorder, start) = (Reorder::new(3), Instant::now());
        reorder.sent_up_to(NO_SEQ, start);
        reorder.sent_up_to(2, start);
        assert!(reorder.is_complete());
        reorder.sent_up_to(5, start);
        let mut asked = Vec::new();
        reorder.tick(start + LIMITS.delay, &LIMITS, &mut asked);
        assert_eq!(asked, [(3, 5)]);
        reorder.push(5, 4, 1, 5, start);
        reorder.gone(3, 4, start);
        assert_eq!(popped(&mut reorder, start + GONE_TIME), [5]);
        assert!(reorder.is_complete() && reorder.next_number() == 6);
        reorder.sent_up_to(9, start);
        reorder.tick(start, &LIMITS, &mut asked);
        reorder.tick(start + LIMITS.delay, &LIMITS, &mut asked);
        assert!(reorder.tick(start + LIMITS.delay + LIMITS.time, &LIMITS, &mut asked));
        assert_eq!((reorder.next_number(), reorder.given_up), (10, 1));
    }

    #[test]
    fn a_full_queue_gives_up_at_once() {
        let (mut reorder, start) = (Reorder::new(0), Instant::now());
        reorder.push(1, 0, LIMITS.bytes, 1, start);
        assert!(!reorder.tick(start, &LIMITS, &mut Vec::new()));
        reorder.push(3, 2, 1, 3, start);
        assert!(reorder.tick(start, &LIMITS, &mut Vec::new()));
        assert_eq!(popped(&mut reorder, start + GONE_TIME), [1]);
        assert!(!reorder.tick(start, &LIMITS, &mut Vec::new()));
        assert_eq!(reorder.finish(), [(3, 3)]);
        assert!(reorder.is_complete() && reorder.next_number() == 4);
    }

    #[test]
    fn what_a_sender_claims_to_be_gone_is_bounded() {
        let (mut reorder, now) = (Reorder::new(0), Instant::now());
        for number in 0..10_000 {
            reorder.gone(2 * number + 1, 2 * number + 1, now);
        }
        assert_eq!(reorder.gone.len(), MOST_RANGES);
        reorder.gone(0, u64::MAX, now);
        reorder.push(u64::MAX, 0, 1, 0, now);
        assert_eq!((popped(&mut reorder, now), reorder.late), (vec![], 1));
    }

    /// A network: packets that arrive later, by the time of their arrival in milliseconds.
    struct Network {
        random: u64,
        loss: u64,
        on_the_way: BTreeMap<(u64, u64), (u64, u64)>,
        sent: u64,
    }

    impl Network {
        fn below(&mut self, limit: u64) -> u64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.random % limit
        }

        fn send(&mut self, packet: (u64, u64), now: u64) {
            let copies = if self.below(20) == 0 { 2 } else { 1 };
            for _ in 0..copies {
                if self.below(100) >= self.loss {
                    let most = if self.below(10) == 0 { 60 } else { 5 };
                    let delay = 1 + self.below(most);
                    self.sent += 1;
                    self.on_the_way.insert((now + delay, self.sent), packet);
                }
            }
        }
    }

    /// 400 packets over a bad network; how many were sent, and those that left, in the order in which they did.
    fn simulate(seed: u64, loss: u64, resends: bool) -> (Vec<u64>, Vec<u64>, Reorder<u64>) {
        let mut network = Network { random: seed * 2 + 1, loss, on_the_way: BTreeMap::new(), sent: 0 };
        let (mut reorder, start) = (Reorder::new(0), Instant::now());
        let (mut sent, mut store, mut out) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut answers: Vec<(u64, u64, u64)> = Vec::new();
        let (mut number, mut prev) = (0, NO_SEQ);
        for now in 0..60_000 {
            let instant = start + Duration::from_millis(now);
            if sent.len() < 400 {
                // The ring or the cap has dropped some.
                number += 1 + if network.below(10) == 0 { network.below(5) } else { 0 };
                store.insert(number, prev);
                network.send((number, prev), now);
                sent.push(number);
                prev = number;
            }
            if now % 100 == 0 && prev != NO_SEQ {
                reorder.sent_up_to(prev, instant);
            }
            while let Some(first) = network.on_the_way.first_entry().filter(|first| first.key().0 <= now) {
                let (seq, prev) = first.remove();
                reorder.push(seq, prev, 100, seq, instant);
            }
            out.extend(std::iter::from_fn(|| reorder.pop(instant)).map(|(seq, _)| seq));
            let mut asked = Vec::new();
            if reorder.tick(instant, &LIMITS, &mut asked) {
                out.extend(std::iter::from_fn(|| reorder.pop(instant)).map(|(seq, _)| seq));
            }
            // The answers come over TCP, 3 ms later.
            answers.extend(asked.into_iter().map(|(first, last)| (now + 3, first, last)));
            let (due, later) = answers.into_iter().partition(|(time, ..)| *time <= now);
            answers = later;
            for (_, first, last) in due {
                for number in first..=last {
                    match store.get(&number) {
                        Some(prev) if resends => network.send((number, *prev), now),
                        _ => reorder.gone(number, number, instant),
                    }
                }
            }
            if sent.len() == 400
                && network.on_the_way.is_empty()
                && answers.is_empty()
                && now % 100 == 99
                && reorder.is_complete()
            {
                break;
            }
        }
        (sent, out, reorder)
    }

    #[test]
    fn bad_networks_cost_no_order_and_no_packet_that_can_be_sent_again() {
        for seed in 1..=100 {
            for loss in [0, 1, 5, 30] {
                for resends in [true, false] {
                    let (sent, out, reorder) = simulate(seed, loss, resends);
                    let told = format!("seed {seed}, loss {loss} %, resends: {resends}");
                    assert!(out.is_sorted_by(|a, b| a < b), "{told}: each once, in order");
                    assert!(out.iter().all(|number| sent.binary_search(number).is_ok()), "{told}");
                    assert!(reorder.is_complete() && reorder.next_number() == sent[399] + 1, "{told}: it ends");
                    if loss == 0 || loss <= 5 && resends {
                        assert_eq!(out, sent, "{told}: nothing is lost");
                        assert_eq!(reorder.given_up, 0, "{told}");
                    }
                }
            }
        }
    }
}
