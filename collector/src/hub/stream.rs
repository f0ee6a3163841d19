//! A stream of a sender, and the jobs for its files.

#[cfg(test)]
mod tests;

use super::ordered::OrderedStream;
use super::place::Place;
use crate::pairing::{IndexMatcher, StorageItem};
use crate::shares::Share;
use crate::storage::{Files, Job, JobResult, Packet, Segment, SequencedPacket};
use crate::view::View;
use anyhow::Context as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_wire::stream::StreamTotals;

/// Delay before viewers see beacons of stock senders. Such a beacon does not cover streams that are about to appear: an application is announced some
/// time after its first event.
const HOLD: Duration = Duration::from_millis(200);

/// The next files of a stream, for a rotation.
#[derive(Debug)]
struct Rotation {
    /// The tracer's number of the first packet for these files.
    from: u64,
    directory: PathBuf,
    files: Files,
}

/// A stream of packets or of metadata.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) session: u64,
    pub(crate) trace: u64,
    pub(crate) place: Place,
    /// Set once viewers may see it.
    pub(crate) is_published: bool,
    pub(crate) pairing: IndexMatcher<Packet>,
    /// For the stream protocol, in place of `pairing`.
    pub(crate) ordered: Option<OrderedStream>,
    pub(crate) view: View,
    /// The number in the series of files, and the bytes in the current file.
    file: (u64, u64),
    rotation: Option<Rotation>,
    /// Set when the sender has used its share of files: old files are not kept for viewers.
    is_short: bool,
    /// The tracer's number of the last packet given to the storage.
    last_number: Option<u64>,
    /// The number after that of the last packet which is stored or failed.
    stored: u64,
    /// `has_beacon` is set while a beacon is queued at the storage; `next_beacon` waits for that.
    has_beacon: bool,
    next_beacon: Option<u64>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not yet.
    Open,
    /// After this packet.
    Behind(u64),
    /// When no index waits for its packet.
    SenderGone,
    /// The storage is closing the files.
    Closing,
}

/// Attaches the sender's share, if it has one, to files.
fn with(files: Files, share: Option<Arc<Share>>) -> Files {
    match share {
        Some(share) => files.with(share),
        None => files,
    }
}

impl Stream {
    pub(super) fn new(session: u64, trace: u64, place: Place, files: Files, mut give: impl FnMut(Job)) -> Self {
        let view = View::new(files.segment());
        give(Job::Open { files, from: None });
        Self {
            session,
            trace,
            place,
            is_published: false,
            pairing: IndexMatcher::default(),
            ordered: None,
            view,
            file: (0, 0),
            rotation: None,
            is_short: false,
            last_number: None,
            stored: 0,
            has_beacon: false,
            next_beacon: None,
            end: End::Open,
        }
    }

    /// Returns whether packets and indexes may still arrive.
    pub(super) fn takes_packets(&self) -> bool {
        self.end != End::Closing && !self.place.is_metadata()
    }

    /// Returns whether packets up to `last` are stored; 2^64 - 1 means that no packet was sent.
    pub(crate) fn has_stored(&self, last: u64) -> bool {
        last.wrapping_add(1) <= self.stored
    }

    /// Returns whether the sender has ended the stream and the storage has not been asked yet to close its files.
    pub(super) fn is_ending(&self) -> bool {
        self.end != End::Closing && self.ordered.as_ref().is_some_and(|ordered| ordered.end.is_some())
    }

    /// Returns the final counts of an ended stream, once nothing is missing.
    pub(super) fn balance(&mut self, metadata: Option<&View>) -> Option<StreamTotals> {
        self.ordered.as_mut()?.balance(&self.view, metadata)
    }

    /// Ends the stream once the packet numbered `last` has arrived.
    pub(super) fn close_behind(&mut self, last: u64) {
        if self.end == End::Open {
            self.end = End::Behind(last);
        }
    }

    pub(super) fn sender_is_gone(&mut self) {
        if self.end != End::Closing {
            self.end = End::SenderGone;
        }
    }

    /// Continues the stream in another directory from the packet numbered `from`; metadata, from now on.
    pub(crate) fn rotate(&mut self, from: u64, directory: PathBuf, give: impl FnMut(Job)) -> io::Result<()> {
        // If another rotation is pending, no packet arrived for its chunk and its files stay empty: the new files take over their share.
        let share = if self.rotation.is_none() { self.next_share()? } else { None };
        let place = Place { directory, ..self.place.clone() };
        let files = place.create(0)?;
        let share = self.rotation.take().map_or(share, |earlier| earlier.files.share);
        self.rotation = Some(Rotation { from, files: with(files, share), directory: place.directory });
        // All earlier packets have arrived.
        let is_due = self.place.is_metadata() || self.last_number.map_or(0, |last| last.saturating_add(1)) >= from;
        if is_due {
            self.switch(give);
        }
        Ok(())
    }

    /// Continues the stream in these files in another directory. All earlier packets are stored.
    pub(super) fn go_on(&mut self, directory: PathBuf, files: Files, mut give: impl FnMut(Job)) {
        self.place.directory = directory;
        // The storage has nothing queued before these.
        let replacement = |view: &View| view.current().and_then(Segment::share).map(|share| share.replacement().into());
        let share = self.next_share().unwrap_or_else(|_| replacement(&self.view));
        let files = with(files, share);
        self.view.will_open(files.segment());
        if let Some(ordered) = &mut self.ordered {
            ordered.tally.next_file();
        }
        give(Job::Open { files, from: None });
    }

    /// Takes the share for the next files; closes old ones if necessary. Until the storage opens the new files, the share may exceed the sender's
    /// limit. The error means that files before these have not been opened yet.
    fn next_share(&mut self) -> io::Result<Option<Arc<Share>>> {
        let refused = |why| io::Error::new(io::ErrorKind::WouldBlock, why);
        if self.view.is_far_behind() {
            return Err(refused("the files before these have not been opened yet"));
        }
        let Some(share) = self.view.current().and_then(Segment::share) else { return Ok(None) };
        if let Some(share) = share.another() {
            // Old files are closed when the storage opens their successors.
            self.is_short &= self.view.is_behind();
            return Ok(Some(share.into()));
        }
        self.is_short = true;
        self.view.forget_old();
        let share = self.view.current().and_then(Segment::share);
        let share = share.and_then(|share| share.another().or_else(|| share.successor()));
        share.map(|share| Some(share.into())).ok_or_else(|| {
            refused(
                "its sender, or its address, has its share of the files of the collector (`--files`), and those before these have not been opened yet",
            )
        })
    }

    /// Returns whether its files are open or still to be closed.
    pub(super) fn is_open(&self) -> bool {
        self.end != End::Closing
    }

    /// Restarts the metadata in a new file.
    pub(super) fn replace(&mut self, mut give: impl FnMut(Job)) -> io::Result<()> {
        let share = self.next_share()?;
        Files::remove_metadata(&self.place.directory)?;
        let files = with(self.place.create(0)?, share);
        self.view.will_open(files.segment());
        give(Job::Open { files, from: None });
        Ok(())
    }

    /// Switches to the files of the next chunk.
    fn switch(&mut self, mut give: impl FnMut(Job)) {
        if let Some(Rotation { from, directory, files }) = self.rotation.take() {
            self.view.will_open(files.segment());
            give(Job::Open { files, from: (!self.place.is_metadata()).then_some(from) });
            self.place.directory = directory;
            self.file = (0, 0);
        }
    }

    /// Hands complete packets to the storage, and closes the stream when it ends here.
    ///
    /// The error is a message about a file that could not be created.
    pub(super) fn advance(&mut self, now: Instant, mut give: impl FnMut(Job)) -> anyhow::Result<()> {
        let mut result = Ok(());
        if let Some(ordered) = &mut self.ordered {
            while let Some((packet, index)) = ordered.pop(now) {
                give(Job::Packet(SequencedPacket { sequence: index.sequence, packet, index: Some(index) }));
            }
            if let Some(time) = ordered.fulfilled() {
                give(Job::Beacon { time });
            }
            if self.end == End::SenderGone {
                self.give_up(give);
            }
            return result;
        }
        while let Some(paired) = self.pairing.next(now) {
            result = self.give(paired, &mut give).and(result);
        }
        match self.end {
            End::Behind(last) if self.place.is_metadata() || self.pairing.has_passed(last) && !self.wants() => {
                self.give_up(give);
            }
            End::SenderGone if !self.pairing.wants_packets() => self.give_up(give),
            _ => {}
        }
        result
    }

    /// Returns whether packets or indexes still wait for each other.
    fn wants(&self) -> bool {
        self.pairing.wants_packets() || self.pairing.has_packets()
    }

    /// Gives up all gaps and hands the packets behind them to the storage.
    pub(super) fn pass_gaps(&mut self, mut give: impl FnMut(Job)) {
        if let Some(ordered) = self.ordered.as_mut().filter(|_| self.end != End::Closing) {
            for (packet, index) in ordered.finish() {
                give(Job::Packet(SequencedPacket { sequence: index.sequence, packet, index: Some(index) }));
            }
            give(Job::Release { upto: u64::MAX });
        }
    }

    /// Ends the stream with the packets that have arrived.
    pub(super) fn give_up(&mut self, mut give: impl FnMut(Job)) {
        if self.end == End::Closing {
            return;
        }
        if let Some(ordered) = &mut self.ordered {
            // The gaps are counted already; packets behind them are stored.
            for (packet, index) in ordered.finish() {
                give(Job::Packet(SequencedPacket { sequence: index.sequence, packet, index: Some(index) }));
            }
            give(Job::Release { upto: u64::MAX });
        }
        for paired in self.pairing.finish() {
            // No further file is needed at the end.
            let _ = self.give(paired, &mut give);
        }
        self.switch(&mut give);
        self.end = End::Closing;
        give(Job::Close);
    }

    fn give(&mut self, paired: StorageItem<Packet>, mut give: impl FnMut(Job)) -> anyhow::Result<()> {
        let mut result = Ok(());
        match paired {
            StorageItem::Packet { sequence, packet, index } => {
                if let Some(number) = index.map(|index| index.packet_number) {
                    if self.rotation.as_ref().is_some_and(|rotation| number >= rotation.from) {
                        self.switch(&mut give);
                    }
                    self.last_number = Some(number);
                }
                self.next_beacon = None;
                result = self.make_room(packet.size(), &mut give);
                give(Job::Packet(SequencedPacket { sequence, packet, index }));
            }
            // While a beacon is queued at the storage, only the latest one waits behind it.
            StorageItem::Beacon { time } if self.has_beacon => self.next_beacon = Some(time),
            StorageItem::Beacon { time } => {
                self.has_beacon = true;
                give(Job::Beacon { time });
            }
            StorageItem::Unindexed => give(Job::Unindex),
        }
        result
    }

    /// Switches to the next file of the series if this packet would make the current one too large.
    fn make_room(&mut self, size: u64, mut give: impl FnMut(Job)) -> anyhow::Result<()> {
        let (number, bytes) = self.file;
        self.file.1 = bytes + size;
        if self.place.limit.0 == 0 || bytes == 0 || bytes + size <= self.place.limit.0 {
            return Ok(());
        }
        // Without a share for another file, the current one exceeds its maximum size.
        let share = match self.view.current().and_then(Segment::share).map(Share::another) {
            Some(None) => {
                self.view.forget_old();
                match self.view.current().and_then(Segment::share).and_then(Share::another) {
                    None => return Ok(()),
                    share => share,
                }
            }
            share => share.flatten(),
        };
        let files = self.place.create(number + 1).with_context(|| {
            format!("cannot create the next file of {}", self.place.directory.join(&self.place.channel).display())
        })?;
        let files = with(files, share.map(Arc::new));
        self.file = (number + 1, size);
        self.view.will_open(files.segment());
        give(Job::Open { files, from: None });
        Ok(())
    }

    /// Handles a result of the storage. Returns the bytes of a packet that was stored.
    pub(super) fn done(&mut self, done: &JobResult, now: Instant, mut give: impl FnMut(Job)) -> u64 {
        match *done {
            JobResult::Opened { entries, bytes, moved } => {
                self.view.opened(entries, bytes, moved);
                if self.is_short {
                    self.view.forget_old();
                }
            }
            JobResult::Packet { sequence, size, stream_class } => {
                self.stored = self.stored.max(sequence.saturating_add(1));
                let stream_class = match (&mut self.ordered, stream_class) {
                    (Some(ordered), Some(stream_class)) => ordered.stored(sequence, size.is_some(), stream_class),
                    (_, stream_class) => stream_class.filter(|_| size.is_some()),
                };
                if let Some(stream_class) = stream_class {
                    self.view.stored(stream_class);
                }
                return size.unwrap_or_default();
            }
            JobResult::Released { upto } => {
                for stream_class in self.ordered.as_mut().map(|ordered| ordered.release(upto)).unwrap_or_default() {
                    self.view.stored(stream_class);
                }
            }
            JobResult::Metadata { bytes } => self.view.stored_bytes(bytes),
            JobResult::Beacon { time } => {
                self.view.inactive_until(time, now, if self.ordered.is_some() { Duration::ZERO } else { HOLD });
                self.has_beacon = self.next_beacon.is_some();
                if let Some(time) = self.next_beacon.take() {
                    give(Job::Beacon { time });
                }
            }
            JobResult::Closed => self.view.close(),
            JobResult::Full(_) | JobResult::Marked | JobResult::Removed { .. } => {}
        }
        0
    }
}
