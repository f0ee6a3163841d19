//! Takes the packets of one stream: those that a sink has kept and those that are in the ring still, in order, each once.

use super::RecoverError;
use super::journal::Journal;
use super::meter::Meter;
use super::outputs::Kept;
use super::stream::{Stream, Taken};
use super::summary::RecoveredProcess;
use crate::error::ReadError;
use crate::metadata::Metadata;
use crate::ring::head::Head;
use crate::ring::{Place, Ring, RingPacket, StreamCounters};

/// Who is told of what is met.
pub(super) struct Told<'t, 'm> {
    pub(super) journal: &'t mut Journal,
    pub(super) meter: &'t mut Meter<'m>,
    pub(super) summary: &'t mut RecoveredProcess,
}

/// What is known of a stream once its packets are taken.
pub(super) struct TakenStream<'a> {
    pub(super) stream: Stream<'a>,
    pub(super) counters: StreamCounters,
    /// How many records were committed.
    pub(super) committed: u64,
}

impl TakenStream<'_> {
    /// How many events the stream counts as lost.
    pub(super) fn discarded(&self) -> u64 {
        self.counters.discarded.max(self.stream.discarded)
    }
}

/// What there is of a stream in its ring.
pub(super) struct Looked<'r> {
    pub(super) counters: StreamCounters,
    /// The places, in the order of their packets.
    pub(super) places: Box<dyn Iterator<Item = Result<Place, ReadError>> + 'r>,
}

/// A stream while its packets are taken.
pub(super) struct Taking<'a, 'r, 't, 'm> {
    told: Told<'t, 'm>,
    stream: Stream<'a>,
    ring: &'r Ring,
    looked: Looked<'r>,
    /// The records up to the end of the packet that was being written.
    open: Option<u64>,
}

impl<'a, 'r, 't, 'm> Taking<'a, 'r, 't, 'm> {
    pub(super) fn new(told: Told<'t, 'm>, stream: Stream<'a>, ring: &'r Ring, looked: Looked<'r>) -> Self {
        Self { told, stream, ring, looked, open: None }
    }

    /// Takes all of them.
    pub(super) fn run(mut self, metadata: &Metadata, mut kept: Option<Kept>) -> Result<TakenStream<'a>, RecoverError> {
        let mut held = self.next_in_ring()?;
        while let Some(bytes) = kept.as_mut().and_then(|kept| kept.next(metadata, self.told.journal)) {
            let sequence = Head::parse(&bytes).sequence;
            while let Some(packet) = held.take_if(|packet| packet.number + 1 < sequence) {
                self.take_from_ring(packet)?;
                held = self.next_in_ring()?;
            }
            self.take_from_output(bytes, sequence)?;
        }
        while let Some(packet) = held {
            self.take_from_ring(packet)?;
            held = self.next_in_ring()?;
        }
        Ok(self.end())
    }

    /// The next packet that is in the ring.
    fn next_in_ring(&mut self) -> Result<Option<RingPacket>, RecoverError> {
        while let Some(place) = self.looked.places.next() {
            match place? {
                Place::Packet(packet) => return Ok(Some(packet)),
                Place::Unused => self.told.summary.unused_places += 1,
                Place::Torn(reason) => self.torn(&reason),
            }
        }
        Ok(None)
    }

    fn take_from_output(&mut self, bytes: Vec<u8>, sequence: u64) -> Result<(), RecoverError> {
        self.told.meter.pass(bytes.len());
        match self.stream.take(bytes, None)? {
            Taken::Written(_) => self.told.summary.packets_from_outputs += 1,
            Taken::Refused(reason) => {
                let path = self.ring.path().display();
                self.told.journal.wrong(format!("{path}: packet {sequence} of its output: {reason}"));
            }
            Taken::Empty(_) | Taken::Known => {}
        }
        Ok(())
    }

    fn take_from_ring(&mut self, packet: RingPacket) -> Result<(), RecoverError> {
        let RingPacket { number, open, bytes } = packet;
        self.told.meter.pass(bytes.len());
        let after = match self.stream.take(bytes, open.then_some(self.looked.counters.discarded))? {
            Taken::Written(after) => {
                self.told.summary.packets_from_rings += 1;
                self.told.summary.mended += u64::from(open);
                after
            }
            Taken::Empty(after) => after,
            Taken::Known => return Ok(()),
            Taken::Refused(reason) => {
                self.torn(&format!("packet {}: {reason}", number + 1));
                return Ok(());
            }
        };
        if open {
            self.open = Some(after);
        }
        Ok(())
    }

    fn torn(&mut self, reason: &str) {
        self.told.summary.torn_places += 1;
        self.told.journal.wrong(format!("{}: {reason}", self.ring.path().display()));
    }

    /// Finds out how many records were committed. The counter is ahead of that while a record is written, which it is into an
    /// open packet only.
    fn end(self) -> TakenStream<'a> {
        let Self { told, stream, ring, looked: Looked { counters, .. }, open } = self;
        let committed = open.unwrap_or(counters.records).max(stream.records);
        let ahead = counters.records.checked_sub(committed);
        if ahead.is_none_or(|ahead| ahead > 1) {
            let (path, records) = (ring.path().display(), counters.records);
            told.journal.wrong(format!("{path}: it counts {records} records, and {committed} are committed"));
        }
        if stream.discarded > counters.discarded {
            let (path, found, counted) = (ring.path().display(), stream.discarded, counters.discarded);
            told.journal.wrong(format!("{path}: its packets tell of {found} losses, and its counter of {counted}"));
        }
        TakenStream { stream, counters, committed }
    }
}
