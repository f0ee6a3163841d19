//! Paces the packets of a session: below the bandwidth caps, and over UDP at a rate that the network sustains.
//!
//! Each packet has a [`Ticket`] that says how much of it may be sent, and when. Bandwidth is reserved slice by slice, 10 ms each at the rate of the
//! cap, so that a large packet respects a small cap in every window, and a killed sender leaves at most one slice unused. A packet is dropped if its
//! first slice would be sent more than `patience` after its turn. Its turn is when it was queued, or when the session could send again after it
//! waited for something other than the caps. Empty packets, retransmissions and packets already begun are never dropped.
//!
//! UDP has no back-pressure, so the sender limits its own rate. The rate rises while the collector misses nothing, and falls when it requests packets
//! again. At most [`BURST`] bytes are sent at once, which fits in the smallest usual socket buffer.

use super::queue::QueuedPacket;
use crate::bandwidth::Bandwidth;
use crate::bucket::{Bucket, DEPTH, now};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Limits of a slice in bytes, and the number of slices per second at a cap.
const LARGEST_SLICE: u64 = 64 << 10;
const SLICES_PER_SECOND: u64 = 100;
const SMALLEST_SLICE: u64 = 64;
/// Time that a packet may wait for the cap, in addition to the interval of synchronisation points, whose events arrive at once.
const PATIENCE: Duration = Duration::from_millis(250);
/// Maximum number of datagram bytes sent at once. The kernel charges 2,304 bytes per datagram of 1,400, and a socket buffer has 208 KiB.
const BURST: usize = 48 << 10;
/// The rate of datagrams in bytes per second: initial, minimum and maximum.
const FIRST_RATE: u64 = 16 << 20;
const MIN_RATE: u64 = 2 << 20;
const MAX_RATE: u64 = 4 << 30;
/// Minimum time between two changes of that rate.
const RATE_PAUSE: Duration = Duration::from_millis(100);

/// Permission to send a packet up to byte `end` on the wire, from the time `at` in ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub(super) end: usize,
    at: u64,
}

impl Ticket {
    /// Returns whether its time has not come yet.
    pub(super) fn waits(&self) -> bool {
        self.at > now()
    }

    /// Returns the instant of its time.
    pub(super) fn time(&self) -> Instant {
        Instant::now() + Duration::from_nanos(self.at.saturating_sub(now()))
    }
}

/// The units that packets are sent in: datagrams, or one record per packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLayout {
    /// Number of packet bytes per unit; `None`: the whole packet.
    pub(super) unit: Option<usize>,
    /// Size of the header of each unit in bytes.
    pub(super) header: usize,
}

/// The pacing state of a session.
#[derive(Debug)]
pub(super) struct Throttle {
    bandwidth: Bandwidth,
    framing: FrameLayout,
    datagrams: Option<DatagramRate>,
    patience: Duration,
    /// When the session last waited for something other than the caps.
    ready: u64,
}

impl Throttle {
    pub(super) fn new(bandwidth: Bandwidth, framing: FrameLayout, sync_interval: Duration) -> Self {
        let datagrams =
            framing.unit.map(|_| DatagramRate { bucket: Bucket::private(FIRST_RATE), changed: Instant::now() });
        Self { bandwidth, framing, datagrams, patience: PATIENCE + sync_interval, ready: now() }
    }

    /// Records that the session waits for something other than the caps, so that its packets' turn begins later.
    pub(super) fn not_ready(&mut self) {
        self.ready = now();
    }

    /// Returns the time by which the first slice of a packet must be sent.
    fn deadline(&self, packet: &QueuedPacket) -> u64 {
        packet.queued.max(self.ready).saturating_add(self.patience.as_nanos() as u64)
    }

    /// Returns whether a packet queued behind a waiting one has itself waited too long.
    pub(super) fn is_overdue(&self, packet: &QueuedPacket) -> bool {
        packet.events() > 0 && now() > self.deadline(packet)
    }

    /// Returns the ticket for the first slice of `part` of a packet; `None` if the packet is to be dropped.
    pub(super) fn admit(&self, packet: &QueuedPacket, part: Range<usize>) -> Option<Ticket> {
        let now = now();
        // At the deadline, a packet is still sent if that is possible at once.
        let latest = if packet.events() > 0 { self.deadline(packet).max(now) } else { u64::MAX };
        self.pay(part, now, latest)
    }

    /// Returns the ticket for the first slice of `part` of a packet that is sent in any case.
    pub(super) fn ticket(&self, part: Range<usize>) -> Ticket {
        let end = part.end;
        self.pay(part, now(), u64::MAX).unwrap_or(Ticket { end, at: 0 })
    }

    fn pay(&self, part: Range<usize>, now: u64, latest: u64) -> Option<Ticket> {
        let end = part.start.saturating_add(self.slice()).min(part.end);
        let FrameLayout { unit, header } = self.framing;
        let units = unit.map_or(1, |unit| (end - part.start).div_ceil(unit));
        let bytes = end - part.start + units * header;
        let Bandwidth { session, run_dir, .. } = &self.bandwidth;
        let mut at = now;
        if session.as_ref().is_some_and(|session| session.next(now, DEPTH) > latest) {
            return None;
        }
        if let Some(run_dir) = run_dir {
            at = at.max(run_dir.reserve(bytes, now, DEPTH, latest)?);
        }
        if let Some(session) = session {
            at = at.max(session.reserve(bytes, now, DEPTH, u64::MAX)?);
        }
        if let Some(datagrams) = &self.datagrams {
            at = at.max(datagrams.reserve(bytes, now)?);
        }
        Some(Ticket { end, at })
    }

    /// Returns the number of packet bytes per slice.
    fn slice(&self) -> usize {
        let rates = self.bandwidth.caps().filter_map(Bucket::rate);
        let of_cap = rates.min().map(|rate| (rate / SLICES_PER_SECOND).clamp(SMALLEST_SLICE, LARGEST_SLICE) as usize);
        match self.framing.unit {
            Some(unit) => (of_cap.unwrap_or(BURST).min(BURST) / unit).max(1) * unit,
            None => of_cap.unwrap_or(usize::MAX),
        }
    }

    /// Raises the rate of datagrams after an acknowledgement.
    pub(super) fn stored(&mut self) {
        self.change_rate(|rate| rate + rate / 8);
    }

    /// Lowers the rate of datagrams when some are missing.
    pub(super) fn missed(&mut self) {
        self.change_rate(|rate| rate - rate / 4);
    }

    fn change_rate(&mut self, change: impl FnOnce(u64) -> u64) {
        let Some(DatagramRate { bucket, changed }) = &mut self.datagrams else { return };
        if changed.elapsed() >= RATE_PAUSE {
            *changed = Instant::now();
            bucket.set_rate(bucket.rate().map(|rate| change(rate).clamp(MIN_RATE, MAX_RATE)));
        }
    }
}

/// The rate of datagrams to one collector.
#[derive(Debug)]
struct DatagramRate {
    bucket: Bucket,
    changed: Instant,
}

impl DatagramRate {
    fn reserve(&self, bytes: usize, now: u64) -> Option<u64> {
        let rate = self.bucket.rate().unwrap_or(MIN_RATE);
        let depth = Duration::from_nanos(BURST as u64 * 1_000_000_000 / rate);
        self.bucket.reserve(bytes, now, depth, u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::StreamInfo;
    use tracepoint_ring::channel::{PacketHeader, StreamId};

    const RECORD: FrameLayout = FrameLayout { unit: None, header: 8 };
    const DATAGRAMS: FrameLayout = FrameLayout { unit: Some(1344), header: 56 };

    fn throttle(max: Option<u64>, framing: FrameLayout) -> Throttle {
        let mut bandwidth = Bandwidth { max, ..Bandwidth::default() };
        bandwidth.begin();
        Throttle::new(bandwidth, framing, Duration::ZERO)
    }

    fn packet(queued: u64) -> QueuedPacket {
        let stream = StreamInfo { id: StreamId { class: 0, instance: 1 }, channel: "c".to_owned() };
        let (header, bytes) = (PacketHeader::default(), Vec::new());
        QueuedPacket { stream, header, bytes, events_before: 3, events_after: 5, queued }
    }

    #[test]
    fn a_large_packet_is_sent_in_slices_of_the_cap() {
        let throttle = throttle(Some(100_000), RECORD);
        let mut ticket = throttle.ticket(0..50_000);
        let (first, mut slices) = (ticket, 1);
        assert_eq!((first.end, first.waits()), (1000, false));
        while ticket.end < 50_000 {
            ticket = throttle.ticket(ticket.end..50_000);
            slices += 1;
        }
        let expected = 50_000 + 50 * 8;
        assert_eq!((slices, throttle.bandwidth.session.as_ref().expect("a cap").charged()), (50, expected));
        // The initial burst takes 100 ms of half a second.
        assert!(ticket.waits() && ticket.at - first.at >= 380_000_000, "{first:?} {ticket:?}");
    }

    #[test]
    fn datagrams_never_leave_in_larger_bursts_than_a_socket_buffer_holds() {
        let throttle = throttle(None, DATAGRAMS);
        let begin = now();
        let (mut end, mut at_once, mut last) = (0, 0, begin);
        while end < 1 << 20 {
            let ticket = throttle.ticket(end..1 << 20);
            assert!((ticket.end - end).is_multiple_of(1344) || ticket.end == 1 << 20, "whole datagrams");
            if ticket.at <= begin {
                at_once += (ticket.end - end).div_ceil(1344);
            }
            (end, last) = (ticket.end, ticket.at);
        }
        // Each counts 2,304 bytes in a buffer of 212,992.
        assert!(at_once * 2304 <= 212_992, "{at_once} datagrams");
        assert!(last - begin >= 50_000_000, "1 MiB at 16 MiB/s: {} ns", last - begin);
    }

    #[test]
    fn a_packet_that_cannot_be_sent_in_time_is_dropped_and_others_are_not() {
        let throttle = throttle(Some(10_000), RECORD);
        let (now, second) = (now(), 1_000_000_000);
        assert!(throttle.admit(&packet(now), 0..100).is_some());
        // The next second is reserved.
        for _ in 0..130 {
            let _ = throttle.ticket(0..100);
        }
        assert!(throttle.admit(&packet(now), 0..100).is_none(), "it would begin a second late");
        let empty = QueuedPacket { events_after: 3, ..packet(now) };
        assert!(throttle.admit(&empty, 0..100).is_some(), "it has no event");
        assert!(throttle.admit(&packet(now + 60 * second), 0..100).is_some(), "its turn comes later");
        assert!(throttle.is_overdue(&QueuedPacket { queued: 0, ..packet(0) }) || throttle.ready > now - second);
        let other = self::throttle(Some(10_000), RECORD);
        assert!(other.admit(&packet(0), 0..100).is_some(), "it is old, but nothing is taken");
    }

    #[test]
    fn the_rate_of_datagrams_follows_what_the_collector_misses() {
        let mut throttle = throttle(None, DATAGRAMS);
        let rate = |throttle: &Throttle| throttle.datagrams.as_ref().and_then(|rate| rate.bucket.rate());
        let mut change = |change: fn(&mut Throttle)| {
            throttle.datagrams.as_mut().expect("datagrams").changed -= RATE_PAUSE;
            change(&mut throttle);
            rate(&throttle).expect("a rate")
        };
        assert_eq!(change(Throttle::missed), FIRST_RATE / 4 * 3);
        assert_eq!(change(Throttle::stored), FIRST_RATE / 4 * 3 / 8 * 9);
        let least = (0..100).map(|_| change(Throttle::missed)).last();
        let most = (0..100).map(|_| change(Throttle::stored)).last();
        assert_eq!((least, most), (Some(MIN_RATE), Some(MAX_RATE)));
    }

    #[test]
    fn a_cap_at_which_a_packet_takes_more_than_10_s_is_refused() {
        let mut bandwidth = Bandwidth { max: Some(1000), ..Bandwidth::default() };
        bandwidth.begin();
        assert!(bandwidth.check(10_000).is_ok());
        let error = bandwidth.check(10_001).expect_err("too small").to_string();
        assert!(error.contains("`--max-bandwidth` to at least 1001"), "{error}");
        let mut shared = Bandwidth::default();
        shared.share(None, Some(Bucket::private(7)));
        let error = shared.check(80).expect_err("too small").to_string();
        assert!(error.contains("tracectl bandwidth"), "{error}");
    }
}
