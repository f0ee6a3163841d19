//! The cells of the matrix: a point in a stream of a thread's ring, under a policy; and the actions of the process that make it reach the
//! point.

use std::fmt;
use std::time::Duration;
use tracepoint_ring::channel::RINGLESS_INSTANCE;
use tracepoint_ring::channel::failpoint::{Action, Point, arm};
use tracepoint_session::Channel;

/// A policy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    /// A channel with rings of this number of bytes.
    pub(crate) channel: fn(usize) -> Channel,
    /// True if its rings are drained while the session runs, and hold every record until then; otherwise the oldest are overwritten.
    pub(crate) drained: bool,
}

/// All policies.
pub(crate) const POLICIES: &[Policy] = &[
    Policy { name: "discard", channel: Channel::discard, drained: true },
    Policy { name: "overwrite", channel: Channel::overwrite, drained: false },
    Policy { name: "wait", channel: |size| Channel::wait(size, Duration::from_millis(50)), drained: true },
];

/// The threads that record.
pub(crate) const THREADS: usize = 2;
/// Bytes of a packet, and packets of a ring.
pub(crate) const PACKET: usize = 512;
pub(crate) const PACKETS: usize = 16;
/// Packets of a ring's nested stream.
pub(crate) const NESTED_PACKETS: usize = 4;
/// Records of a packet: 24 bytes each, after a header of 96.
pub(crate) const RECORDS: usize = (PACKET - 96) / 24;

/// A stream of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Main,
    /// The stream of events that a signal handler fires in the middle of a record.
    Nested,
    /// None: the events of a thread without a ring are only counted.
    Ringless,
}

/// The actions of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It records continuously.
    Busy,
    /// It records for a while, and then waits with a packet open.
    Idle,
    /// The thread ends, and another one takes its ring, or another spare one, and continues.
    Succeeded,
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) point: Point,
    /// The thread that owns the ring.
    pub(crate) thread: usize,
    pub(crate) side: Side,
    pub(crate) policy: &'static Policy,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?} {}", self.policy.name, self.thread, self.side, self.point.name())
    }
}

impl Case {
    /// Returns all possible cells.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let sides = [Side::Main, Side::Nested, Side::Ringless];
        let cells = Point::ALL.iter().flat_map(move |&point| sides.map(|side| (point, side)));
        let cases = cells.flat_map(|(point, side)| {
            let threads = (0..THREADS).flat_map(|thread| POLICIES.iter().map(move |policy| (thread, policy)));
            threads.map(move |(thread, policy)| Self { point, thread, side, policy })
        });
        cases.filter(Self::is_possible)
    }

    /// Returns the cell with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|case| case.to_string() == name)
    }

    /// Returns whether the point is in this range of the list.
    fn is_among(&self, first: Point, last: Point) -> bool {
        (first..=last).contains(&self.point)
    }

    /// Returns whether the process can reach the point. A ring's own points do not concern its individual streams. Two points concern only
    /// the thread's first attempt, which is in the main stream. If no ring is handed on while the process runs, nothing is flushed and
    /// drained. Events are lost only if they neither overwrite others nor wait. A thread leaves its ring to the consumer if other rings are spare, so the history of this ring is kept.
    fn is_possible(&self) -> bool {
        let handed_on =
            self.point == Point::SwitchRequested || self.is_among(Point::FlushRequested, Point::DrainReleased);
        let nested = self.is_among(Point::Entered, Point::DrainReleased) && self.point != Point::Left;
        if self.loses() {
            return self.policy.name == "discard" && (self.side != Side::Ringless || self.thread == 0);
        }
        if self.point == Point::FiredTwice {
            return self.policy.name == "discard" && self.side == Side::Main;
        }
        let left_to_consumer = self.is_among(Point::EndBegun, Point::RingPooled);
        (if self.policy.drained { !left_to_consumer } else { !handed_on })
            && (self.side == Side::Main || self.side == Side::Nested && nested)
    }

    /// Returns the actions of a thread.
    pub(crate) fn life(&self, thread: usize) -> Life {
        if self.makes_rings() {
            Life::Idle
        } else if thread != self.thread {
            Life::Busy
        } else if self.is_among(Point::RingTaken, Point::RingOwned)
            || self.is_among(Point::HandOnBegun, Point::RingPooled)
        {
            Life::Succeeded
        } else if self.is_among(Point::FlushRequested, Point::FlushDone) {
            Life::Idle
        } else {
            Life::Busy
        }
    }

    /// Returns the count of the visit to the point at which the process is killed.
    fn time(&self) -> u64 {
        let places = if self.side == Side::Main { PACKETS } else { NESTED_PACKETS } as u64;
        if self.is_among(Point::RingTaken, Point::RingOwned) {
            // The first visit is at the thread's first event; this is the visit of its successor.
            2
        } else if self.is_among(Point::Fired, Point::Left) {
            // Somewhere within a packet, neither the first nor the last.
            2 * RECORDS as u64 + 7
        } else if self.is_among(Point::SwitchBegun, Point::Opened) {
            // Each slot has been used, and is used again.
            2 * places + 1
        } else if self.is_among(Point::DrainBegun, Point::DrainReleased) {
            places + 1
        } else if self.loses() {
            // The first loss in the main stream takes the full path, the next ones do not.
            7
        } else {
            1
        }
    }

    fn main_instance(&self) -> u64 {
        2 * self.thread as u64
    }

    /// Returns the stream whose visits are counted.
    fn instance(&self) -> u64 {
        if self.side == Side::Ringless {
            RINGLESS_INSTANCE
        } else if self.makes_rings() {
            // The spare rings that are created when the threads have taken theirs.
            2 * THREADS as u64 + self.main_instance()
        } else {
            self.main_instance() + u64::from(self.side == Side::Nested)
        }
    }

    /// Returns the maximum number of rings: no more than threads, so that each thread has the ring of its number, and its successor the
    /// same. There are more only if rings are created while the process runs, or a thread continues in another ring, or leaves its own to
    /// the consumer.
    pub(crate) fn rings(&self) -> usize {
        let has_more = self.makes_rings() || self.point == Point::FiredTwice;
        if has_more || self.is_among(Point::EndBegun, Point::RingPooled) { 2 * THREADS } else { THREADS }
    }

    /// Returns the number of initially spare rings.
    pub(crate) fn spares(&self) -> usize {
        if self.makes_rings() { THREADS } else { self.rings() }
    }

    /// Returns whether a thread fills its ring, and then continues in another one or loses events.
    pub(crate) fn overflows(&self, thread: usize) -> bool {
        let fills = self.point == Point::FiredTwice || self.loses() && self.side != Side::Ringless;
        fills && self.thread == thread
    }

    /// Returns whether events are lost.
    pub(crate) fn loses(&self) -> bool {
        self.is_among(Point::LossBegun, Point::LossNotDiscarded)
    }

    fn makes_rings(&self) -> bool {
        self.is_among(Point::RingWithoutMagic, Point::RingMade)
    }

    /// Arms the point, so that the process is killed there.
    pub(crate) fn arm(&self, signal: i32) {
        let written = Point::HeaderWordWritten;
        if self.side == Side::Nested {
            arm(written, self.main_instance(), 1, Action::Signal(signal));
        }
        if self.point == Point::SwitchRequested {
            // The thread sleeps in the middle of a record while its packet is requested, so it has to close the packet itself.
            arm(written, self.instance(), RECORDS as u64 + 7, Action::Sleep(Duration::from_secs(1)));
        }
        arm(self.point, self.instance(), self.time(), Action::Kill);
    }
}
