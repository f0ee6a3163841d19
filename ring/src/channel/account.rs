//! The account of a channel: fired = recorded + filtered + suppressed + lost, by reason.
//!
//! Each ring has a row of counters of its own, with one entry for each event of the channel; threads without a ring share one row. The rows
//! are in the memory of the rings, where other processes can read them. Each counter is incremented independently: none is derived from
//! another.

use crate::counter::LocalCounter;

/// Why an event that fired and passed the filter was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
#[non_exhaustive]
pub enum Loss {
    /// The thread's ring had no free packet (policy discard).
    RingFull,
    /// The record is larger than a packet.
    TooLarge,
    /// No spare ring was ready for the thread.
    NoRing,
    /// A signal handler interrupted a signal handler that interrupted a write.
    Nested,
    /// A field expression panicked.
    Panicked,
    /// The process is a fork of the one that records.
    NotAttached,
}

impl Loss {
    /// All reasons.
    pub const ALL: &'static [Self] =
        &[Self::RingFull, Self::TooLarge, Self::NoRing, Self::Nested, Self::Panicked, Self::NotAttached];

    /// The reason's name in the account: `ring_full`, `too_large`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::RingFull => "ring_full",
            Self::TooLarge => "too_large",
            Self::NoRing => "no_ring",
            Self::Nested => "nested",
            Self::Panicked => "panicked",
            Self::NotAttached => "not_attached",
        }
    }
}

/// One event's counters in one row, as documented in `docs/format-ring.md`. Those that every event increments come first.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct EventCounters {
    pub(super) fired: LocalCounter,
    pub(super) recorded: LocalCounter,
    pub(super) filtered: LocalCounter,
    pub(super) suppressed: LocalCounter,
    pub(super) lost: [LocalCounter; Loss::ALL.len()],
}

impl EventCounters {
    pub(super) const fn lost(&self, reason: Loss) -> &LocalCounter {
        &self.lost[reason as usize]
    }
}

/// The account of one event of a channel, over all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventAccount {
    /// How often it fired while the channel was subscribed.
    pub fired: u64,
    /// How often it was committed to a ring.
    pub recorded: u64,
    /// How often a filter rejected it.
    pub filtered: u64,
    /// How often a rate limit suppressed it.
    pub suppressed: u64,
    lost: [u64; Loss::ALL.len()],
}

impl EventAccount {
    pub(super) fn add(&mut self, counters: &EventCounters) {
        self.fired += counters.fired.get();
        self.recorded += counters.recorded.get();
        self.filtered += counters.filtered.get();
        self.suppressed += counters.suppressed.get();
        for &reason in Loss::ALL {
            self.lost[reason as usize] += counters.lost(reason).get();
        }
    }

    /// How often it was lost, for this reason.
    pub const fn lost(&self, reason: Loss) -> u64 {
        self.lost[reason as usize]
    }

    /// How often it was lost, whatever the reason.
    pub fn total_lost(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// The account of one stream, as its ring has counted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamAccount {
    /// The stream's instance number.
    pub instance: u64,
    /// Records committed to it.
    pub recorded: u64,
    /// Bytes of its packets, headers and the open one included.
    pub bytes: u64,
    /// Events that could not be recorded in it.
    pub discarded: u64,
    /// Records whose time was raised to that of the record before.
    pub clamped: u64,
    /// Records with a text in which a NUL was replaced.
    pub altered: u64,
    /// Events that waited for a free packet, successfully or not.
    pub waited: u64,
    /// For how long they waited, in ns.
    pub waited_ns: u64,
}

/// The account of a channel. Exact while nothing fires; otherwise a snapshot of running counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelAccount {
    /// By event id.
    pub events: Vec<EventAccount>,
    /// By stream. The last one is for events without a ring: it never holds a record.
    pub streams: Vec<StreamAccount>,
}
