//! Streams that continue in another directory, such as those of LTTng's rotated sessions: each directory is a complete trace with the same UUID, and
//! the counters continue.
//!
//! If a stream begins with discarded events, they may have been lost before it. The counters of another directory that has the stream up to this
//! point settle that. Copies of a trace, and outputs of two sinks of one trace, overlap and do not continue each other.

use std::ffi::OsString;
use std::path::Path;

use super::losses::KnownCounters;
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::stream::StreamReader;

/// A stream in one directory, represented by its first packet.
pub(super) struct StreamStart {
    /// The UUID of its trace, its class and its instance; without an instance, the name of its file.
    key: ([u8; 16], u64, Option<u64>, Option<OsString>),
    metadata: Metadata,
    /// The reader in its initial state.
    reader: StreamReader,
    pub(super) begin: i64,
    discarded: Option<u64>,
    sequence: Option<u64>,
}

impl StreamStart {
    /// `None` if its trace has no UUID.
    pub(super) fn new(
        metadata: &Metadata,
        reader: &StreamReader,
        file: &Path,
        begin: i64,
        first: &Packet,
    ) -> Option<Self> {
        let name = if first.instance.is_none() { file.file_name().map(OsString::from) } else { None };
        Some(Self {
            key: (metadata.uuid()?, first.class.id, first.instance, name),
            metadata: metadata.clone(),
            reader: reader.clone(),
            begin,
            discarded: first.discarded,
            sequence: first.sequence,
        })
    }

    /// The counters before it, from the last packet of the stream among `all` that it continues; `None` if there is none.
    pub(super) fn before<'a>(&self, all: impl Iterator<Item = &'a Self>) -> Option<KnownCounters> {
        if self.discarded.is_none_or(|discarded| discarded == 0) && self.sequence.is_none_or(|number| number == 0) {
            return None;
        }
        let earlier = all.filter(|other| other.key == self.key && other.begin < self.begin);
        let previous = earlier.max_by_key(|other| other.begin)?;
        let last = previous.reader.clone().pass_before(i64::MAX)?;
        let is_over = previous.metadata.nanoseconds(&last.class, last.end?) <= self.begin;
        let rises = last.sequence.zip(self.sequence).is_none_or(|(last, first)| last < first);
        // The last packet's events are not counted here. Other tracers may begin with any packet number.
        let sequence = last.events_before.and(last.sequence).map(|number| number.saturating_add(1));
        (is_over && rises).then_some(KnownCounters { sequence, discarded: last.discarded, ..KnownCounters::default() })
    }
}
