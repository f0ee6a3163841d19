//! The account of a channel: fired = recorded + filtered + suppressed + lost, by reason.
//!
//! Each ring has its own row of counters, with one entry for each event of the channel; threads without a ring share one row. The rows
//! are in the memory of the rings, where other processes can read them. Each counter is incremented independently: none is derived from
//! another.

use crate::counter::LocalCounter;

/// The reason that an event was not recorded, although it fired and passed the filter.
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
    /// The process is a fork of the recording process.
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

/// The counters of an event in one row, as documented in `docs/format-ring.md`. The counters that every event increments come first.
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
    /// Number of times it fired while the channel was subscribed.
    pub fired: u64,
    /// Number of times it was committed to a ring.
    pub recorded: u64,
    /// Number of times a filter rejected it.
    pub filtered: u64,
    /// Number of times a rate limit suppressed it.
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

    /// Number of times it was lost for this reason.
    pub const fn lost(&self, reason: Loss) -> u64 {
        self.lost[reason as usize]
    }

    /// Number of times it was lost for any reason.
    pub fn total_lost(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// The account of one stream, as counted by its ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamAccount {
    /// The stream's instance number.
    pub instance: u64,
    /// Records committed to it.
    pub recorded: u64,
    /// Bytes of its packets, including headers and the open packet.
    pub bytes: u64,
    /// Events that could not be recorded in it.
    pub discarded: u64,
    /// Records whose time was raised to the time of the previous record.
    pub clamped: u64,
    /// Records with a text that contained a NUL, which was replaced.
    pub altered: u64,
    /// Events that waited for a free packet or for a ring, successfully or not.
    pub waited: u64,
    /// Total time of these waits in ns.
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
