//! What the ring's owner counted.

use super::page::Page;

/// The reasons why events were lost, in the order of the account's entries: as the account file names them.
pub const REASONS: [&str; 6] = ["ring_full", "too_large", "no_ring", "nested", "panicked", "not_attached"];

/// The counters of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounters {
    /// Records written; ahead of what is committed by one while a record is written.
    pub records: u64,
    /// Packets that are complete.
    pub closed: u64,
    /// Events lost on their way to the stream.
    pub discarded: u64,
    /// Times set to that of the record before.
    pub clamped: u64,
    /// Texts in which a NUL was replaced.
    pub altered: u64,
    /// Events that waited for room.
    pub waited: u64,
    /// For how long they waited, in nanoseconds.
    pub waited_ns: u64,
}

impl StreamCounters {
    /// How many bytes they take.
    pub(super) const SIZE: usize = 56;

    pub(super) fn parse(page: Page<'_>) -> Self {
        Self {
            records: page.u64(0),
            closed: page.u64(8),
            discarded: page.u64(16),
            clamped: page.u64(24),
            altered: page.u64(32),
            waited: page.u64(40),
            waited_ns: page.u64(48),
        }
    }
}

/// The counters of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCounters {
    /// How often it fired.
    pub fired: u64,
    /// How often it was committed.
    pub recorded: u64,
    /// How often a filter refused it.
    pub filtered: u64,
    /// How often it was left out on purpose.
    pub suppressed: u64,
    /// How often it was lost, by [`REASONS`].
    pub lost: [u64; REASONS.len()],
}

impl EventCounters {
    pub(super) fn parse(page: Page<'_>) -> Self {
        Self {
            fired: page.u64(0),
            recorded: page.u64(8),
            filtered: page.u64(16),
            suppressed: page.u64(24),
            lost: std::array::from_fn(|reason| page.u64(32 + 8 * reason)),
        }
    }
}
