//! The counters kept by the owner of a ring.

use crate::fields::Fields;
use tracepoint_ring::channel::Loss;
use tracepoint_ring::channel::ring_offsets::{counters, entry};

/// The counters of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounters {
    /// Number of records. A record that is being written is counted before it is committed.
    pub records: u64,
    /// Number of closed packets.
    pub closed: u64,
    /// Number of events lost on their way to the stream.
    pub discarded: u64,
    /// Number of times that were raised to the previous record's time.
    pub clamped: u64,
    /// Number of texts in which a NUL was replaced.
    pub altered: u64,
    /// Number of events that waited for space, or for a ring.
    pub waited: u64,
    /// Total time that events waited, in nanoseconds.
    pub waited_ns: u64,
}

impl StreamCounters {
    pub(crate) fn parse(fields: Fields<'_>) -> Self {
        Self {
            records: fields.u64(counters::RECORDS),
            closed: fields.u64(counters::CLOSED),
            discarded: fields.u64(counters::DISCARDED),
            clamped: fields.u64(counters::CLAMPED),
            altered: fields.u64(counters::ALTERED),
            waited: fields.u64(counters::WAITED),
            waited_ns: fields.u64(counters::WAITED_NS),
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
    /// How often it was lost, in the order of [`Loss::ALL`].
    pub lost: [u64; Loss::ALL.len()],
}

impl EventCounters {
    /// The counters of a ring whose owner is recording, consistent with packets that were taken between `before` and `after`; `latest` was
    /// read after `after`.
    ///
    /// An event is counted as fired, then committed or lost, then counted as such. Events counted as recorded in `before` are thus in the
    /// packets; a loss reported by the packets is counted in `after`; and each of these is counted as fired in `latest`.
    pub(crate) fn around(before: Vec<Self>, after: &[Self], latest: &[Self]) -> Vec<Self> {
        let readings = before.into_iter().zip(after).zip(latest);
        readings
            .map(|((before, after), latest)| Self { fired: latest.fired, recorded: before.recorded, ..*after })
            .collect()
    }

    pub(crate) fn parse(fields: Fields<'_>) -> Self {
        Self {
            fired: fields.u64(entry::FIRED),
            recorded: fields.u64(entry::RECORDED),
            filtered: fields.u64(entry::FILTERED),
            suppressed: fields.u64(entry::SUPPRESSED),
            lost: std::array::from_fn(|reason| fields.u64(entry::LOST + 8 * reason)),
        }
    }
}
