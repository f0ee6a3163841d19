//! Takes the packets of one stream in order, each once: those kept by a sink, and those still in the ring.

use super::RecoverError;
use super::meter::Meter;
use super::outputs::KeptStream;
use super::since::{PacketRemainder, leave_out_before};
use super::stream_file::StreamFile;
use super::summary::RecoveredProcess;
use crate::checksum::{self, ChecksumResult, seal};
use crate::error::ReadError;
use crate::metadata::Metadata;
use crate::ring::{Ring, RingPacket, Side, StreamCounters, SubBuffer};
use crate::take::{Journal, NextPacket, Position, StreamEnd, Walker};
use tracepoint_ring::channel::PacketHeader;

/// The progress and the findings of a recovery.
pub(super) struct Progress<'t, 'm> {
    pub(super) journal: &'t mut Journal,
    pub(super) meter: &'t mut Meter<'m>,
    pub(super) summary: &'t mut RecoveredProcess,
    /// Earlier events are left out.
    pub(super) since: u64,
}

/// The part of a stream that is in its ring.
pub(super) struct RingPart<'r> {
    pub(super) counters: StreamCounters,
    /// True if its owner may overwrite packets while they are read.
    pub(super) runs: bool,
    /// The sub-buffers, in the order of their packets.
    pub(super) sub_buffers: Box<dyn Iterator<Item = Result<SubBuffer, ReadError>> + 'r>,
}

/// The place where a packet was found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Output,
    /// In the ring. With the stream's counter of discarded events, the packet was not closed.
    Ring {
        open: Option<u64>,
    },
}

/// A stream whose packets are being taken.
pub(super) struct StreamTaker<'a, 'r, 't, 'm> {
    pub(super) progress: Progress<'t, 'm>,
    pub(super) metadata: &'a Metadata,
    pub(super) walker: &'t mut Walker,
    pub(super) file: StreamFile<'a>,
    pub(super) position: Position,
    pub(super) ring: &'r Ring,
    pub(super) in_ring: RingPart<'r>,
    /// The records up to the end of the open packet.
    pub(super) open: Option<u64>,
}

impl<'a> StreamTaker<'a, '_, '_, '_> {
    /// Takes all packets.
    pub(super) fn run(
        mut self,
        side: Side,
        mut kept: Option<KeptStream>,
    ) -> Result<(StreamFile<'a>, StreamEnd), RecoverError> {
        let mut held = self.next_in_ring()?;
        while let Some(bytes) = kept.as_mut().and_then(|kept| kept.next(self.metadata, self.progress.journal)) {
            let sequence = PacketHeader::parse(&bytes).sequence;
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
        Ok((self.file, StreamEnd::new(side, self.position, self.in_ring.counters, self.open)))
    }

    /// The next packet in the ring.
    fn next_in_ring(&mut self) -> Result<Option<RingPacket>, RecoverError> {
        while let Some(found) = self.in_ring.sub_buffers.next() {
            match found? {
                SubBuffer::Packet(packet) => return Ok(Some(packet)),
                SubBuffer::Unused => self.progress.summary.unused_places += 1,
                // Overwritten packets show as a gap between the counters, which count their events.
                SubBuffer::Torn(reason) if self.in_ring.runs => {
                    self.progress.summary.torn_places += 1;
                    self.progress.journal.note(format!("{}: {reason}", self.ring.path().display()));
                }
                SubBuffer::Torn(reason) => self.torn(&reason),
            }
        }
        Ok(None)
    }

    fn take_from_output(&mut self, mut bytes: Vec<u8>, sequence: u64) -> Result<(), RecoverError> {
        if let Some(Err(reason)) = self.take(&mut bytes, Origin::Output)? {
            let path = self.ring.path().display();
            self.progress.journal.wrong(format!("{path}: packet {sequence} of its output: {reason}"));
        }
        Ok(())
    }

    fn take_from_ring(&mut self, packet: RingPacket) -> Result<(), RecoverError> {
        let RingPacket { number, open, mut bytes } = packet;
        let open_with = open.then_some(self.in_ring.counters.discarded);
        let is_unchecked = checksum::check(&bytes) == ChecksumResult::None;
        match self.take(&mut bytes, Origin::Ring { open: open_with })? {
            Some(Ok(next)) => {
                if !next.is_empty() {
                    self.progress.summary.packets_from_rings += 1;
                    self.progress.summary.mended += u64::from(open);
                    self.progress.summary.unchecked += u64::from(is_unchecked);
                }
                if open {
                    self.open = Some(next.after);
                }
            }
            Some(Err(reason)) => self.torn(&format!("packet {}: {reason}", number + 1)),
            None => {}
        }
        Ok(())
    }

    fn take(&mut self, bytes: &mut [u8], origin: Origin) -> Result<Option<Result<NextPacket, String>>, RecoverError> {
        take(bytes, origin, self.metadata, self.walker, &mut self.position, &mut self.file, &mut self.progress)
    }

    fn torn(&mut self, reason: &str) {
        self.progress.summary.torn_places += 1;
        self.progress.journal.wrong(format!("{}: {reason}", self.ring.path().display()));
    }
}

/// Writes a packet that has records and fits after the previous one; returns the reason if it does not fit. `None` if the stream is past it.
pub(super) fn take(
    bytes: &mut [u8],
    origin: Origin,
    metadata: &Metadata,
    walker: &mut Walker,
    position: &mut Position,
    file: &mut StreamFile<'_>,
    progress: &mut Progress<'_, '_>,
) -> Result<Option<Result<NextPacket, String>>, RecoverError> {
    progress.meter.pass(bytes.len());
    if PacketHeader::parse(bytes).sequence <= position.sequence {
        return Ok(None);
    }
    let open = if let Origin::Ring { open } = origin { open } else { None };
    let checked = position.check(walker, metadata, bytes, open);
    if let Ok(next) = &checked
        && !next.is_empty()
    {
        // A packet of an output without a checksum is from an older tracer, and is kept unchanged.
        match origin {
            Origin::Output => progress.summary.packets_from_outputs += 1,
            Origin::Ring { .. } => seal(bytes),
        }
        let records = next.after - next.before;
        match leave_out_before(progress.since, metadata, bytes) {
            PacketRemainder::Whole => file.write(bytes, records)?,
            PacketRemainder::Cut { bytes: size, left_out } => {
                let bytes = &mut bytes[..size];
                seal(bytes);
                file.write(bytes, records.saturating_sub(left_out))?;
            }
            PacketRemainder::Nothing => {}
        }
        position.advance(next, walker);
    }
    Ok(Some(checked))
}
