//! The counters that the owner of a ring keeps.

use crate::fields::Fields;

/// The reasons of losses as the account names them, in the order of the counters.
pub const REASONS: [&str; 6] = ["ring_full", "too_large", "no_ring", "nested", "panicked", "not_attached"];

/// The counters of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounters {
    /// Records written. While a record is written, it is counted and not yet committed.
    pub records: u64,
    /// Packets that were closed.
    pub closed: u64,
    /// Events lost on their way to the stream.
    pub discarded: u64,
    /// Times that were raised to that of the previous record.
    pub clamped: u64,
    /// Texts in which a NUL was replaced.
    pub altered: u64,
    /// Events that waited for space.
    pub waited: u64,
    /// The time that they waited, in nanoseconds.
    pub waited_ns: u64,
}

impl StreamCounters {
    /// Size in bytes.
    pub(crate) const SIZE: usize = 56;

    pub(crate) fn parse(fields: Fields<'_>) -> Self {
        Self {
            records: fields.u64(0),
            closed: fields.u64(8),
            discarded: fields.u64(16),
            clamped: fields.u64(24),
            altered: fields.u64(32),
            waited: fields.u64(40),
            waited_ns: fields.u64(48),
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
    /// How often a filter rejected it.
    pub filtered: u64,
    /// How often sampling or a rate limit left it out.
    pub suppressed: u64,
    /// How often it was lost, in the order of [`REASONS`].
    pub lost: [u64; REASONS.len()],
}

impl EventCounters {
    /// The counters of a ring whose owner records meanwhile, to go with packets that were taken between `before` and `after`; `latest` was
    /// read behind `after`.
    ///
    /// An event is counted as fired, then committed or lost, then counted as such. What was recorded `before` is thus in the
    /// packets; a loss that the packets report is counted in `after`; and each of these has fired in `latest`.
    pub(crate) fn around(before: Vec<Self>, after: &[Self], latest: &[Self]) -> Vec<Self> {
        let readings = before.into_iter().zip(after).zip(latest);
        readings
            .map(|((before, after), latest)| Self { fired: latest.fired, recorded: before.recorded, ..*after })
            .collect()
    }

    pub(crate) fn parse(fields: Fields<'_>) -> Self {
        Self {
            fired: fields.u64(0),
            recorded: fields.u64(8),
            filtered: fields.u64(16),
            suppressed: fields.u64(24),
            lost: std::array::from_fn(|reason| fields.u64(32 + 8 * reason)),
        }
    }
}
