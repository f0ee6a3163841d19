//! Streams whose ring is gone or unreadable: only the packets in outputs are left.

use super::RecoverError;
use super::outputs::KeptStream;
use super::packets::{Origin, Progress, take};
use super::stream_file::StreamFile;
use super::target::Target;
use crate::account::StreamAccount;
use crate::metadata::Metadata;
use crate::ring::{EventCounters, StreamCounters};
use crate::take::{AccountBuilder, Position, RingAccounting, Walker, check_layout};
use std::path::Path;
use tracepoint_ring::channel::{PacketHeader, StreamKey};

/// A stream that is in outputs but has no ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostRing {
    pub(super) stream: StreamKey,
    /// The name of its file, which begins with the name of its channel.
    pub(super) file: String,
}

impl LostRing {
    /// Writes the packets in `kept`. Only the ring would have shown what followed them, and which events were lost before them.
    pub(super) fn recover(
        self,
        metadata: &Metadata,
        target: &Target,
        mut kept: KeptStream,
        walker: &mut Walker,
        account: &mut AccountBuilder,
        progress: &mut Progress<'_, '_>,
    ) -> Result<Option<StreamAccount>, RecoverError> {
        let Self { stream, file: name } = self;
        if let Err(reason) = check_layout(metadata, stream.uuid, stream.class) {
            progress.journal.wrong(format!("{name}: {reason}; its packets are left out"));
            return Ok(None);
        }
        let empty = |time| PacketHeader::empty(stream, time);
        let (mut position, mut file) = (Position::new(0), None);
        while let Some(mut bytes) = kept.next(metadata, progress.journal) {
            let head = PacketHeader::parse(&bytes);
            let removed = kept.removed.as_ref().and_then(|removed| removed.of_stream(stream));
            let into = file.get_or_insert_with(|| StreamFile::new(target, name.clone(), empty(head.begin), removed));
            if let Some(Err(reason)) =
                take(&mut bytes, Origin::Output, metadata, walker, &mut position, into, progress)?
            {
                progress.journal.wrong(format!("{name}: packet {} of its output: {reason}", head.sequence));
            }
            // The file begins with the first packet that is taken, which may be earlier than a rejected one.
            if position.sequence == 0 {
                file = None;
            }
        }
        let Some(file) = file.filter(|_| position.records > 0 || position.discarded > 0) else { return Ok(None) };
        progress.journal.wrong(format!(
            "{name}: its ring is gone or cannot be read; what an output had of it is kept, and how many events followed is not known"
        ));
        let last = PacketHeader {
            sequence: position.sequence.saturating_add(1),
            discarded: position.discarded,
            events_before: position.records,
            ..empty(position.end)
        };
        let (recorded, discarded) = (position.records, position.discarded);
        let counts = StreamAccount { instance: stream.instance, recorded, discarded, ..StreamAccount::default() };
        let counts = file.finish(&last, counts)?;
        account.introduce_unnamed(stream.class, name.rsplit_once('_').map_or(name.as_str(), |(channel, _)| channel));
        let most = position.events.keys().next_back().map_or(0, |id| *id as usize + 1);
        let mut events = vec![EventCounters::default(); most];
        for (id, found) in &position.events {
            (events[*id as usize].fired, events[*id as usize].recorded) = (found.count, found.count);
        }
        account.events(stream.class, Path::new(&name), &RingAccounting::running(events), progress.journal);
        account.stream(stream.class, counts.clone(), &StreamCounters::default());
        Ok(Some(counts))
    }
}
