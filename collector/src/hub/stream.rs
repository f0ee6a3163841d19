//! A stream of a stock sender.

#[cfg(test)]
mod tests;

use super::ordered::Ordered;
use super::place::Place;
use crate::pairing::{Paired, Pairing};
use crate::shares::Share;
use crate::storage::{Done, Files, Job, Packet, Segment, SequencedPacket};
use crate::view::View;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_wire::stream::Delivered;

/// How much later viewers are told of beacons of stock senders. These do not promise anything about streams that are about to appear: an application is known
/// some time after its first event.
const HOLD: Duration = Duration::from_millis(200);

/// The files into which a stream rotates.
#[derive(Debug)]
struct Rotation {
    /// The tracer's number of the first packet that belongs there.
    from: u64,
    directory: PathBuf,
    files: Files,
}

/// A stream of packets, or of metadata.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) session: u64,
    /// The same for all streams of a trace.
    pub(crate) trace: u64,
    pub(crate) place: Place,
    /// Whether viewers may be told of it.
    pub(crate) is_published: bool,
    pub(crate) pairing: Pairing<Packet>,
    /// For a stream of the stream protocol, which has no use for the pairing.
    pub(crate) ordered: Option<Ordered>,
    pub(crate) view: View,
    /// The number in the series of files, and the bytes in this file.
    file: (u64, u64),
    rotation: Option<Rotation>,
    /// The sender has its share of files: old ones are not kept for viewers.
    is_short: bool,
    /// The tracer's number of the last packet that was given to the storage.
    last_number: Option<u64>,
    /// Behind the last packet that is stored, or cannot be.
    stored: u64,
    /// Whether the storage has a beacon that it has not come to, and the one behind it.
    has_beacon: bool,
    next_beacon: Option<u64>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not yet.
    Open,
    /// Behind this packet.
    Behind(u64),
    /// When no index waits for its packet.
    SenderGone,
    /// The storage closes the files.
    Closing,
}

/// Files with the share that they take, if the sender has one.
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
            pairing: Pairing::default(),
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

    /// Whether packets and indexes may still come.
    pub(super) fn takes_packets(&self) -> bool {
        self.end != End::Closing && !self.place.is_metadata()
    }

    /// Whether packets up to this one are stored; 2^64 - 1: no packet was sent.
    pub(crate) fn has_stored(&self, last: u64) -> bool {
        last.wrapping_add(1) <= self.stored
    }

    /// Whether its sender has said that it has ended, and the storage has not closed its files yet.
    pub(super) fn is_ending(&self) -> bool {
        self.end != End::Closing && self.ordered.as_ref().is_some_and(Ordered::has_end)
    }

    /// What of an ended stream was delivered, when nothing is missing any more.
    pub(super) fn balance(&mut self, metadata: Option<&View>) -> Option<Delivered> {
        self.ordered.as_mut()?.balance(&self.view, metadata)
    }

    /// The stream ends when this packet has come.
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

    /// From the packet with this number on, or from now on for metadata, the files are in another directory.
    pub(crate) fn rotate(&mut self, from: u64, directory: PathBuf, give: impl FnMut(Job)) -> io::Result<()> {
        // The stream had no packet for the chunk between, whose files stay empty: these take their share.
        let share = if self.rotation.is_none() { self.next_share()? } else { None };
        let place = Place { directory, ..self.place.clone() };
        let files = place.create(0)?;
        let share = self.rotation.take().map_or(share, |earlier| earlier.files.into_share());
        self.rotation = Some(Rotation { from, files: with(files, share), directory: place.directory });
        // All packets before it have come.
        let is_due = self.place.is_metadata() || self.last_number.map_or(0, |last| last.saturating_add(1)) >= from;
        if is_due {
            self.switch(give);
        }
        Ok(())
    }

    /// The packets that come are stored in these files from now on, in another directory. All before them are stored.
    pub(super) fn go_on(&mut self, directory: PathBuf, files: Files, mut give: impl FnMut(Job)) {
        self.place.directory = directory;
        // The storage has nothing to do before these.
        let replacement = |view: &View| view.current().and_then(Segment::share).map(|share| share.replacement().into());
        let share = self.next_share().unwrap_or_else(|_| replacement(&self.view));
        let files = with(files, share);
        self.view.will_open(files.segment());
        if let Some(ordered) = &mut self.ordered {
            ordered.tally.next_file();
        }
        give(Job::Open { files, from: None });
    }

    /// The share of the files that follow, for which old ones are closed if need be. It may be beyond that of the sender, until the storage opens these files;
    /// the error is that other ones have to be opened before.
    fn next_share(&mut self) -> io::Result<Option<Arc<Share>>> {
        let refused = |why| io::Error::new(io::ErrorKind::WouldBlock, why);
        if self.view.is_far_behind() {
            return Err(refused("the files before these have not been opened yet"));
        }
        let Some(share) = self.view.current().and_then(Segment::share) else { return Ok(None) };
        if let Some(share) = share.another() {
            // Old files are closed when the storage opens what has followed them.
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

    /// Whether its files are open, or will be until the storage has closed them.
    pub(super) fn is_open(&self) -> bool {
        self.end != End::Closing
    }

    /// Begins the file anew; of metadata.
    pub(super) fn replace(&mut self, mut give: impl FnMut(Job)) -> io::Result<()> {
        let share = self.next_share()?;
        Files::remove_metadata(&self.place.directory)?;
        let files = with(self.place.create(0)?, share);
        self.view.will_open(files.segment());
        give(Job::Open { files, from: None });
        Ok(())
    }

    /// Goes on in the files of the next chunk.
    fn switch(&mut self, mut give: impl FnMut(Job)) {
        if let Some(Rotation { from, directory, files }) = self.rotation.take() {
            self.view.will_open(files.segment());
            give(Job::Open { files, from: (!self.place.is_metadata()).then_some(from) });
            self.place.directory = directory;
            self.file = (0, 0);
        }
    }

    /// Hands packets that are complete to the storage, and closes the stream if it ends here.
    ///
    /// The error is a message: a file could not be created.
    pub(super) fn advance(&mut self, now: Instant, mut give: impl FnMut(Job)) -> Result<(), String> {
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

    /// Whether the last packets wait for indexes that may come.
    fn wants(&self) -> bool {
        self.pairing.wants_packets() || self.pairing.has_packets()
    }

    /// Hands over what waits behind gaps, which are given up; more is not waited for.
    pub(super) fn pass_gaps(&mut self, mut give: impl FnMut(Job)) {
        if let Some(ordered) = self.ordered.as_mut().filter(|_| self.end != End::Closing) {
            for (packet, index) in ordered.finish() {
                give(Job::Packet(SequencedPacket { sequence: index.sequence, packet, index: Some(index) }));
            }
            give(Job::Release { upto: u64::MAX });
        }
    }

    /// Ends the stream with what has come.
    pub(super) fn give_up(&mut self, mut give: impl FnMut(Job)) {
        if self.end == End::Closing {
            return;
        }
        if let Some(ordered) = &mut self.ordered {
            // What was given up was counted; what waits behind it is stored.
            for (packet, index) in ordered.finish() {
                give(Job::Packet(SequencedPacket { sequence: index.sequence, packet, index: Some(index) }));
            }
            give(Job::Release { upto: u64::MAX });
        }
        for paired in self.pairing.finish() {
            // The end needs no further file.
            let _ = self.give(paired, &mut give);
        }
        self.switch(&mut give);
        self.end = End::Closing;
        give(Job::Close);
    }

    fn give(&mut self, paired: Paired<Packet>, mut give: impl FnMut(Job)) -> Result<(), String> {
        let mut result = Ok(());
        match paired {
            Paired::Packet { sequence, packet, index } => {
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
            // One more waits while the storage has not come to the last one, however long that takes.
            Paired::Beacon { time } if self.has_beacon => self.next_beacon = Some(time),
            Paired::Beacon { time } => {
                self.has_beacon = true;
                give(Job::Beacon { time });
            }
            Paired::Unindexed => give(Job::Unindex),
        }
        result
    }

    /// Goes on in a further file if this one would be too large.
    fn make_room(&mut self, size: u64, mut give: impl FnMut(Job)) -> Result<(), String> {
        let (number, bytes) = self.file;
        self.file.1 = bytes + size;
        if self.place.limit.0 == 0 || bytes == 0 || bytes + size <= self.place.limit.0 {
            return Ok(());
        }
        // The file is larger than it may be if there is no other.
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
        let files = self.place.create(number + 1).map_err(|error| {
            format!(
                "cannot create the next file of {}: {error}",
                self.place.directory.join(&self.place.channel).display()
            )
        })?;
        let files = with(files, share.map(Arc::new));
        self.file = (number + 1, size);
        self.view.will_open(files.segment());
        give(Job::Open { files, from: None });
        Ok(())
    }

    /// The storage has done something; the bytes of a packet that is in the file now.
    pub(super) fn done(&mut self, done: &Done, now: Instant, mut give: impl FnMut(Job)) -> u64 {
        match *done {
            Done::Opened { entries, bytes, moved } => {
                self.view.opened(entries, bytes, moved);
                if self.is_short {
                    self.view.forget_old();
                }
            }
            Done::Packet { sequence, size, stream_class } => {
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
            Done::Released { upto } => {
                for stream_class in self.ordered.as_mut().map(|ordered| ordered.release(upto)).unwrap_or_default() {
                    self.view.stored(stream_class);
                }
            }
            Done::Metadata { bytes } => self.view.stored_bytes(bytes),
            Done::Beacon { time } => {
                self.view.inactive_until(time, now, if self.ordered.is_some() { Duration::ZERO } else { HOLD });
                self.has_beacon = self.next_beacon.is_some();
                if let Some(time) = self.next_beacon.take() {
                    give(Job::Beacon { time });
                }
            }
            Done::Closed => self.view.close(),
            Done::Full(_) | Done::Marked | Done::Removed { .. } => {}
        }
        0
    }
}
