//! The cells of the matrix: which point, in which stream of which thread's ring, under which policy; and what the process has to do so
//! that it comes by.

use std::fmt;
use std::time::Duration;
use tracepoint_ring::channel::failpoint::{Action, Point, arm};
use tracepoint_session::Channel;

/// A policy.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    /// A channel with rings of so many bytes.
    pub(crate) channel: fn(usize) -> Channel,
    /// True if its rings are drained while the session runs, and then hold every record until it is; otherwise the oldest are overwritten.
    pub(crate) drained: bool,
}

/// All of them.
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
/// Records of a packet: 24 bytes each, behind a header of 96.
pub(crate) const RECORDS: usize = (PACKET - 96) / 24;

/// A stream of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Main,
    /// Of events that a signal handler fires in the middle of a record.
    Nested,
}

/// What the thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It records on and on.
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
    /// Whose ring it is.
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
    /// All that can be.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let sides = [Side::Main, Side::Nested];
        let cells = Point::ALL.iter().flat_map(move |&point| sides.map(|side| (point, side)));
        let cases = cells.flat_map(|(point, side)| {
            let threads = (0..THREADS).flat_map(|thread| POLICIES.iter().map(move |policy| (thread, policy)));
            threads.map(move |(thread, policy)| Self { point, thread, side, policy })
        });
        cases.filter(Self::is_possible)
    }

    /// The one that is displayed as this.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|case| case.to_string() == name)
    }

    /// Returns whether the point is one of these, in the order of the list.
    fn is_among(&self, first: Point, last: Point) -> bool {
        (first..=last).contains(&self.point)
    }

    /// Returns whether the process can come by. A ring's own points are not about one of its streams, two points are of the thread's first
    /// try alone, which is in the main stream, and where nothing is handed on while the process runs nothing is flushed and drained. A thread
    /// leaves its ring to the consumer where other rings are spare, so that the history in this one is kept.
    fn is_possible(&self) -> bool {
        let handed_on =
            self.point == Point::SwitchRequested || self.is_among(Point::FlushRequested, Point::DrainReleased);
        let nested = self.is_among(Point::Entered, Point::DrainReleased) && self.point != Point::Left;
        if self.point == Point::FiredTwice {
            return self.policy.name == "discard" && self.side == Side::Main;
        }
        let left_to_consumer = self.is_among(Point::EndBegun, Point::RingPooled);
        (if self.policy.drained { !left_to_consumer } else { !handed_on }) && (self.side == Side::Main || nested)
    }

    /// What a thread does.
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

    /// At which time that it is passed the process is killed there.
    fn time(&self) -> u64 {
        let places = if self.side == Side::Main { PACKETS } else { NESTED_PACKETS } as u64;
        if self.is_among(Point::RingTaken, Point::RingOwned) {
            // The first one is at the thread's first event; this is that of its successor.
            2
        } else if self.is_among(Point::Fired, Point::Left) {
            // Somewhere in a packet, neither the first nor the last.
            2 * RECORDS as u64 + 7
        } else if self.is_among(Point::SwitchBegun, Point::Opened) {
            // Each place has been used, and is used again.
            2 * places + 1
        } else if self.is_among(Point::DrainBegun, Point::DrainReleased) {
            places + 1
        } else {
            1
        }
    }

    fn main_instance(&self) -> u64 {
        2 * self.thread as u64
    }

    /// The stream whose points count.
    fn instance(&self) -> u64 {
        if self.makes_rings() {
            // The spare rings that are made when the threads have taken theirs.
            2 * THREADS as u64 + self.main_instance()
        } else {
            self.main_instance() + u64::from(self.side == Side::Nested)
        }
    }

    /// How many rings there may be: no more than threads, so that each has the ring of its number, and its successor the same. More only
    /// where rings are made, or a thread goes on in another one, or leaves its own to the consumer.
    pub(crate) fn rings(&self) -> usize {
        let has_more = self.makes_rings() || self.point == Point::FiredTwice;
        if has_more || self.is_among(Point::EndBegun, Point::RingPooled) { 2 * THREADS } else { THREADS }
    }

    /// How many of them are spare at first.
    pub(crate) fn spares(&self) -> usize {
        if self.makes_rings() { THREADS } else { self.rings() }
    }

    /// Returns whether a thread goes on where its ring is full.
    pub(crate) fn overflows(&self, thread: usize) -> bool {
        self.point == Point::FiredTwice && self.thread == thread
    }

    fn makes_rings(&self) -> bool {
        self.is_among(Point::RingWithoutMagic, Point::RingMade)
    }

    /// Has the process killed at the point.
    pub(crate) fn arm(&self, signal: i32) {
        let written = Point::HeaderWordWritten;
        if self.side == Side::Nested {
            arm(written, self.main_instance(), 1, Action::Signal(signal));
        }
        if self.point == Point::SwitchRequested {
            // Its packet is asked for while it sleeps in the middle of a record, and so it is to close it itself.
            arm(written, self.instance(), RECORDS as u64 + 7, Action::Sleep(Duration::from_secs(1)));
        }
        arm(self.point, self.instance(), self.time(), Action::Kill);
    }
}
